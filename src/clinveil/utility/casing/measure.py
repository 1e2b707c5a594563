"""How well a character model of some lines restores the case of others, beside each word's usual casing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.neural import device_named, need_torch, seeded
from clinveil.stats import Interval, jackknife_t, share_by_patient, share_method
from clinveil.utility.casing import CasingSettings, OnLook
from clinveil.utility.casing.lines import Lines, alphabet_of, stream
from clinveil.utility.casing.score import (
    GOLD,
    WORDS,
    Counts,
    Metric,
    by_owner,
    count_words,
    metric_shares,
    permuted,
    restore_usual,
    score,
    usual_casings,
)

SOURCE = "paper C, section 3.3 (letter-case restoration); character LSTM of Susanto et al. 2016"


def casing(
    parts: tuple[Lines, Lines, Lines],
    rng: Generator,
    settings: CasingSettings | None = None,
    *,
    threads: int = 1,
    on_look: OnLook | None = None,
) -> list[Finding]:
    """F1 of the words with a capital on the test lines, by the model and by each word's usual casing.

    Args:
        parts: training, dev and test lines, cased; where the test lines have owners, they are the intervals' unit.
        threads: of PyTorch; with one, the same seed gives the same bits (unless a time limit ends training).
        on_look: called with (step, epochs, dev loss) at each look at the dev lines.

    Returns:
        `utility.casing` (F1; series `model` and `usual casing`), `utility.casing_accuracy` of both, and
        `utility.casing_gain`, their F1's difference. Chance: all in lower case. Control: the casings that were
        restored, dealt out anew among the words. Intervals are over owners of test lines (patients or notes), or over
        lines where they have none; the model is trained once.

    Raises:
        MissingExtra: no PyTorch. InputError: no capital among the test lines, or training that cannot start.
    """
    need_torch()
    settings = settings or CasingSettings()
    train, _, test = parts
    reference = [" ".join(line.split()) for line in test.lines]
    lowered = [line.lower() for line in reference]
    lower = count_words(reference, lowered)
    if not lower[:, GOLD].sum():
        raise InputError("its lines hold no capital letter: there is nothing to restore", where=test.name)
    restored, detail = _restored(parts, lowered, int(rng.integers(2**31)), settings, threads, on_look)
    usual = restore_usual(lowered, usual_casings(train.lines))
    detail["independent"] = len(reference if test.owners is None else set(test.owners))
    scores = _Scores(reference, test.owners, lower, detail, rng)
    metrics: tuple[Metric, ...] = ("f1", "accuracy")
    sides = {"model": restored, "usual casing": usual}
    return [*(scores.side(m, *side) for m in metrics for side in sides.items()), scores.gain(restored, usual)]


def _restored(
    parts: tuple[Lines, Lines, Lines],
    lowered: list[str],
    seed: int,
    settings: CasingSettings,
    threads: int,
    on_look: OnLook | None,
) -> tuple[list[str], dict[str, Any]]:
    """Train, and case the lowered lines; what training was like."""
    from clinveil.utility.casing.network import CharacterLstm, CharacterTraining, restore

    device = device_named(settings.device)
    train, dev, test = parts
    alphabet = alphabet_of(train.lines)
    text = stream(alphabet, train.lines)
    layers, hidden = settings.shape
    with seeded(seed, threads=threads):
        model = CharacterLstm(len(alphabet), layers, hidden, settings.dropout)
        training = CharacterTraining(model, text, stream(alphabet, dev.lines), settings, device, on_look).fit()
        restored = restore(training.finish(), alphabet, lowered, settings)
    detail: dict[str, Any] = {"train_lines": len(train), "dev_lines": len(dev), "test_lines": len(test)}
    detail |= {"characters": len(text), "alphabet": len(alphabet), "layers": layers, "hidden": hidden}
    detail |= training.history | {"beam": settings.beam, "state": settings.state}
    detail |= {"epochs_asked": settings.epochs, "batch": settings.batch}
    return restored, detail


@dataclass(frozen=True)
class _Scores:
    """Turns restored lines into findings, with intervals over the owners of test lines; `lower`: of none."""

    reference: list[str]
    owners: Sequence[str] | None
    lower: Counts
    detail: dict[str, Any]
    rng: Generator

    @property
    def of(self) -> str:
        return "test lines" if self.owners is None else "patients or notes"

    def side(self, metric: Metric, series: str, guess: list[str]) -> Finding:
        """F1 or accuracy of one way to restore."""
        counts = count_words(self.reference, guess)
        control = count_words(self.reference, permuted(guess, self.rng))
        all_of = score(counts)
        detail = {**self.detail, "series": series, "metric": metric}
        detail |= {"precision": all_of.precision, "recall": all_of.recall}
        if series == "model" and metric == "f1" and detail["stopped"] != "all epochs":
            made = f"{detail['epochs']:.1f} of {detail['epochs_asked']} passes"
            detail["warning"] = f"training ended early ({detail['stopped']}), after {made}"
        shares = metric_shares(by_owner(counts, self.owners), metric)
        chance, control_value = getattr(score(self.lower), metric), getattr(score(control), metric)
        return Finding(
            "utility.casing" + ("" if metric == "f1" else "_accuracy"),
            getattr(all_of, metric),
            int(counts[:, WORDS].sum()),
            "higher",
            *share_by_patient(shares),
            chance=chance,
            control=control_value,
            source=SOURCE,
            detail=detail,
            unit="words",
            method=share_method(shares, self.of),
            chance_is="all in lower case",
            control_is="restored casings dealt out anew",
            control_kind="negative",
        )

    def gain(self, guess: list[str], usual: list[str]) -> Finding:
        """F1 of the model less F1 of the usual casings, on the same lines."""
        own, floor = count_words(self.reference, guess), count_words(self.reference, usual)
        low, high = self._gained(by_owner(own, self.owners), by_owner(floor, self.owners))
        detail = {**self.detail, "series": "model less usual casing", "metric": "f1"}
        alone = f"none, of one of the {self.of}"
        return Finding(
            *("utility.casing_gain", score(own).f1 - score(floor).f1, int(own[:, WORDS].sum()), "higher", low, high),
            chance=0.0,
            source=SOURCE,
            detail=detail,
            unit="words",
            method=alone if low is None else f"jackknife over {self.of}, t, 95 %",
        )

    def _gained(self, own: Counts, floor: Counts) -> Interval | tuple[None, None]:
        if len(own) < 2:
            return None, None
        both = np.stack([own, floor], axis=1)
        low, high = jackknife_t(both, lambda sums: score(sums[:1]).f1 - score(sums[1:]).f1)
        return Interval(max(-1.0, low), min(1.0, high))
