"""Audited lower bounds of epsilon of the noisy table, with the stated noise and with less.

python benchmarks/private_audit.py PUBLIC [--patients 1186] [--labels 4] [--runs 20]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from clinveil.core import Key
from clinveil.corpus import open_text, rows
from clinveil.lm import Layout, PrivatePlan, PublicText, audited_table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("public", type=Path)
    parser.add_argument("--patients", type=int, default=1186)
    parser.add_argument("--labels", type=int, default=4)
    parser.add_argument("--runs", type=int, default=20)
    asked = parser.parse_args()
    public = PublicText.of(row.text for row in rows(open_text(asked.public)))
    layout = Layout(asked.labels, len(public.ids))
    for epsilon in (1.0, 3.0, 8.0):
        plan = PrivatePlan.of(asked.patients, asked.labels, epsilon, None)
        for noise in (1.0, 0.5, 0.25, 0.1):
            keys = (Key.from_seed(seed) for seed in range(asked.runs))
            found = [
                audited_table(public, layout, plan.sigma * noise, plan.delta, key) for key in keys
            ]
            bounds = np.array([one.epsilon for one in found])
            above = int((bounds > epsilon).sum())
            line = (
                f"epsilon {epsilon:g}, noise x {noise:g}: bound {bounds.mean():.2f}"
                f" ({bounds.min():.2f} to "
            )
            line += (
                f"{bounds.max():.2f}), above epsilon in {above} of {asked.runs}, at most"
                f" {found[0].highest:.2f}"
            )
            print(line, flush=True)


if __name__ == "__main__":
    main()
