"""Coverage of each interval on data with known truth: the table of benchmarks/intervals.md.

    python benchmarks/interval_coverage.py [NAME ...] [--scale 1] [--seed 1]

NAME: the first words of an interval, for example "area" or "share by patient". `--scale 0.1` makes
a tenth of the repetitions. The intervals are the package's own functions; a figure comes with its
Monte Carlo standard error.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtri

from clinveil.stats import (
    Interval,
    RocScores,
    bootstrap_clusters,
    clopper_pearson,
    jackknife_t,
    ratio,
    share_by_patient,
    t_interval,
    weighted_poisson,
    wilson,
)
from clinveil.utility import Scores

DRAWS = 400  # of a bootstrap; the package draws 1,000
EULER = 0.5772156649015329
Draw = Callable[[Generator], tuple[float, Interval | tuple[float, float]]]
Table = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One line of the table: what is drawn, how often, and the draw, which gives the truth and an
    interval.
    """

    interval: str
    setting: str
    repetitions: int
    draw: Draw

    def covered(self, rng: Generator, scale: float) -> tuple[float, int]:
        """The share of repetitions whose interval holds the truth, and how many there were."""
        n = max(20, round(self.repetitions * scale))
        held = 0
        for _ in range(n):
            truth, (low, high) = self.draw(rng)
            held += low - 1e-12 <= truth <= high + 1e-12
        return held / n, n


def binomial(
    interval: Callable[[int, int], Interval], n: int, p: float, rng: Generator
) -> tuple[float, Interval]:
    return p, interval(int(rng.binomial(n, p)), n)


def values(kind: str, n: int, rng: Generator) -> Table:
    """Of mean 0: normal, or Gumbel as maxima are."""
    return rng.normal(size=n) if kind == "normal" else rng.gumbel(size=n) - EULER


def mean_by_t(kind: str, n: int, rng: Generator) -> tuple[float, Interval]:
    return 0.0, t_interval(values(kind, n, rng))


def mean_by_bootstrap(kind: str, n: int, rng: Generator) -> tuple[float, Interval]:
    return 0.0, bootstrap_clusters(
        values(kind, n, rng), lambda drawn: float(drawn.mean()), rng, draws=DRAWS
    )


def clustered(n: int, share: float, alike: float, rng: Generator) -> Table:
    """Hits and things of n patients, of unlike size; `alike` is the correlation of two things of
    one patient.
    """
    things = 1 + rng.poisson(np.exp(rng.normal(3, 0.7, n)))
    weight = 1 / alike - 1
    hits = rng.binomial(things, rng.beta(share * weight, (1 - share) * weight, size=n))
    return np.stack([hits, things], axis=1).astype(np.float64)


def share(n: int, p: float, alike: float, rng: Generator) -> tuple[float, Interval]:
    return p, share_by_patient(clustered(n, p, alike, rng))


def share_by_bootstrap(n: int, p: float, alike: float, rng: Generator) -> tuple[float, Interval]:
    return p, bootstrap_clusters(clustered(n, p, alike, rng), ratio, rng, draws=DRAWS)


def share_difference(n: int, m: int, p: float, rng: Generator) -> tuple[float, Interval]:
    """As `attack.copies_of_patients`: patients of both sides drawn anew together."""
    marked = np.concatenate(
        [
            np.column_stack([clustered(size, p, 0.1, rng), np.full(size, side)])
            for size, side in ((n, 1), (m, 0))
        ]
    )

    def gap(rows: Table) -> float:
        return ratio(rows[rows[:, 2] == 1]) - ratio(rows[rows[:, 2] == 0])

    return 0.0, bootstrap_clusters(marked, gap, rng, draws=DRAWS)


def sides(members: int, others: int, moved: float, rng: Generator) -> RocScores:
    return RocScores(rng.normal(moved, 1, members), rng.normal(size=others))


def area(members: int, others: int, truth: float, rng: Generator) -> tuple[float, Interval]:
    return truth, sides(members, others, np.sqrt(2) * float(ndtri(truth)), rng).auc_interval()


def found_at(
    members: int, others: int, rate: float, truth: float, rng: Generator
) -> tuple[float, Interval]:
    return truth, sides(members, others, float(ndtri(truth) - ndtri(rate)), rng).tpr_at_fpr(rate)[1]


def naive_found_at(
    members: int, others: int, rate: float, truth: float, rng: Generator
) -> tuple[float, Interval]:
    """The threshold taken as given: what was printed before."""
    hits, _ = sides(members, others, float(ndtri(truth) - ndtri(rate)), rng).tpr_at_fpr(rate)
    return truth, clopper_pearson(round(hits * members), members)


def rare_hits(names: int, expected: float, each: int, rng: Generator) -> tuple[float, Interval]:
    """Names that bring up to `each` pairs to a list of 600."""
    found = rng.integers(1, each + 1, size=names) * (
        rng.random(names) < expected / names / ((1 + each) / 2)
    )
    low, high = weighted_poisson(found[found > 0])
    return expected / 600, Interval(low / 600, high / 600)


def cased(notes: int, rng: Generator) -> tuple[Table, float]:
    """Right, proposed, true and all words of notes whose style varies; and the true F1."""
    words = 30 + rng.poisson(rng.gamma(2, 60, notes))
    gold = rng.binomial(words, rng.beta(2, 8, notes))
    skill = rng.beta(6, 3, notes)
    right = rng.binomial(gold, skill)
    proposed = right + rng.binomial(words - gold, 0.08 * (1 - skill))
    return np.stack([right, proposed, gold, words], axis=1), skill.mean()


def f1_shares(counts: Table) -> Table:
    """Numerator and denominator of F1: correct words, and the mean of proposed and true ones."""
    return np.stack([counts[:, 0], (counts[:, 1] + counts[:, 2]) / 2], axis=1)


def true_f1(rng: Generator) -> float:
    counts = cased(400_000, rng)[0]
    return float(np.divide(*f1_shares(counts).sum(axis=0)))


def letter_case(notes: int, rng: Generator, truth: float) -> tuple[float, Interval]:
    return truth, share_by_patient(f1_shares(cased(notes, rng)[0]))


def f1(sums: Table) -> float:
    return float(2 * sums[0] / (sums[1] + sums[2]))


def case_gain(notes: int, rng: Generator) -> tuple[float, Interval]:
    """The same style restored twice, with other slips: the truth is 0."""
    counts = cased(notes, rng)[0]
    skill = rng.permuted(np.stack([counts[:, 0] / np.maximum(counts[:, 2], 1)] * 2), axis=0)
    two = [rng.binomial(counts[:, 2], side) for side in skill]
    both = np.stack([np.column_stack([right, right + 2, counts[:, 2]]) for right in two], axis=1)
    return 0.0, jackknife_t(both, lambda sums: f1(sums[0]) - f1(sums[1]))


def perplexity(patients: int, rng: Generator) -> tuple[float, tuple[float, float]]:
    """Log of perplexity: nats over tokens, of patients whose notes are hard or easy (standard
    deviation .3 nats).
    """
    tokens = 50 + rng.poisson(rng.gamma(1, 400, patients))
    nats = tokens * rng.normal(4, 0.3, patients)
    return 4.0, jackknife_t(np.stack([nats, tokens], axis=1), lambda sums: float(sums[0] / sums[1]))


def inference(premises: int, seeds: int, all_seeds: bool, rng: Generator) -> tuple[float, Interval]:
    """Accuracy on three pairs a premise, seeds whose skill differs (standard deviation .02)."""
    skill = 0.6 + 0.02 * rng.normal(size=seeds)
    bars = rng.random((seeds + 1, premises, 3)) + rng.normal(0, 0.15, (1, premises, 1))
    mostly = rng.random(bars[0].shape) < 0.8  # seeds find the same pairs hard
    right = [
        (np.where(mostly, bars[0], bar) < one).sum(axis=1)
        for bar, one in zip(bars[1:], skill, strict=True)
    ]
    values = np.stack([np.mean(right, axis=0), np.full(premises, 3.0)], axis=1)
    return (0.6 if all_seeds else float(skill.mean())), share_by_patient(values)


def classified(patients: int, rng: Generator) -> tuple[float, tuple[float, float]]:
    """Paired loss of macro-F1, three classes, 1 to 5 notes a patient, both sides right in .7: the
    truth is 0.
    """
    owner = np.repeat(np.arange(patients), rng.integers(1, 6, size=patients))
    truth = rng.integers(3, size=owner.size)
    skill = rng.beta(7, 3, patients)[owner]
    sides = [
        np.where(
            rng.random(owner.size) < skill, truth, (truth + rng.integers(1, 3, owner.size)) % 3
        )
        for _ in "ab"
    ]
    scores = Scores(truth, [f"p{one}" for one in owner], np.zeros_like(truth), {})
    found = scores.loss("macro_f1", [sides[0]], [sides[1]], rng)
    return 0.0, (float(found.low or 0), float(found.high or 0))


def correlation(pairs: int, truth: float, rng: Generator) -> tuple[float, Interval]:
    people = rng.normal(size=pairs)
    rows = np.stack(
        [people, truth * people + np.sqrt(1 - truth**2) * rng.normal(size=pairs)], axis=1
    )

    def of(drawn: Table) -> float:
        return float(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1])

    return truth, bootstrap_clusters(rows, of, rng, draws=DRAWS)


def shares() -> Iterator[Case]:
    for name, interval in (("Clopper-Pearson", clopper_pearson), ("Wilson", wilson)):
        for n, p in ((20, 0.05), (60, 0.5), (1000, 0.002)):
            yield Case(name, f"n {n}, share {p}", 4000, partial(binomial, interval, n, p))
    cases = [
        (60, 0.01, 0.02),
        (60, 0.01, 0.1),
        (60, 0.01, 0.5),
        (60, 0.03, 0.1),
        (60, 0.03, 0.5),
        (60, 0.5, 0.1),
    ]
    for n, p, alike in [
        *cases,
        (200, 0.005, 0.1),
        (200, 0.02, 0.1),
        (20, 0.02, 0.1),
        (10, 0.3, 0.1),
        (8, 0.5, 0.3),
    ]:
        said = f"{n} patients, share {p}, correlation {alike}"
        yield Case("share by patient (Korn-Graubard)", said, 1000, partial(share, n, p, alike))
    for n, p in ((60, 0.01), (60, 0.5), (200, 0.02)):
        said = f"{n} patients, share {p}, correlation 0.1"
        yield Case(
            "share by patient, percentile bootstrap (before)",
            said,
            400,
            partial(share_by_bootstrap, n, p, 0.1),
        )
    for n, m, p in ((60, 40, 0.03), (200, 100, 0.03)):
        said = f"{n} and {m} patients, share {p} each"
        yield Case("difference of shares, bootstrap", said, 400, partial(share_difference, n, m, p))


def means() -> Iterator[Case]:
    for kind in ("normal", "Gumbel"):
        for n in (6, 8, 12, 30):
            yield Case("mean, Student's t", f"n {n}, {kind}", 2000, partial(mean_by_t, kind, n))
    for kind in ("normal", "Gumbel"):
        for n in (6, 8, 12, 30, 200):
            yield Case(
                "mean, percentile bootstrap",
                f"n {n}, {kind}",
                500,
                partial(mean_by_bootstrap, kind, n),
            )


def separations() -> Iterator[Case]:
    asked = [
        (107, 60, 0.6),
        (107, 60, 0.9),
        (37, 15, 0.85),
        (37, 15, 0.5),
        (10, 10, 0.5),
        (10, 10, 0.85),
    ]
    for members, others, truth in [
        *asked,
        (50, 5, 0.5),
        (50, 5, 0.75),
        (50, 5, 0.9),
        (1000, 1000, 0.6),
    ]:
        yield Case(
            "area under the curve",
            f"{members}/{others}, area {truth}",
            2000,
            partial(area, members, others, truth),
        )
    asked_at = [
        (1000, 1000, 0.01, 0.204),
        (1000, 1000, 0.01, 0.01),
        (107, 60, 0.1, 0.5),
        (107, 60, 0.1, 0.1),
    ]
    for members, others, rate, truth in [
        *asked_at,
        (200, 500, 0.01, 0.3),
        (5000, 5000, 0.001, 0.05),
    ]:
        said = f"{members}/{others}, rate {rate}, truth {truth}"
        yield Case(
            "share found at a rate of false alarms",
            said,
            1000,
            partial(found_at, members, others, rate, truth),
        )
    for members, others, rate, truth in asked_at[:2]:
        said = f"{members}/{others}, rate {rate}, truth {truth}"
        naive = partial(naive_found_at, members, others, rate, truth)
        yield Case("the same, threshold as given (before)", said, 1000, naive)


def others() -> Iterator[Case]:
    for each in (1, 3):
        for expected in (0.5, 1, 3, 6, 12):
            said = f"{expected} hits expected, 1 to {each} a name"
            yield Case(
                "name precision at few hits", said, 3000, partial(rare_hits, 3000, expected, each)
            )
    truth = true_f1(np.random.default_rng(0))
    for notes in (7, 20, 60):
        yield Case(
            "letter case, F1 by patient",
            f"{notes} notes",
            1000,
            partial(letter_case, notes, truth=truth),
        )
        yield Case(
            "letter case, gain (jackknife)", f"{notes} notes", 1000, partial(case_gain, notes)
        )
    for patients in (8, 30, 100):
        yield Case(
            "perplexity (jackknife)", f"{patients} patients", 1000, partial(perplexity, patients)
        )
    for premises, seeds in ((100, 2), (300, 5)):
        said = f"{premises} premises, {seeds} seeds"
        yield Case(
            "inference, of these seeds", said, 1000, partial(inference, premises, seeds, False)
        )
        yield Case(
            "inference, of all seeds (not claimed)",
            said,
            1000,
            partial(inference, premises, seeds, True),
        )
    for patients in (60, 200):
        yield Case(
            "classification, paired loss",
            f"{patients} patients",
            150,
            partial(classified, patients),
        )
    for pairs, known in ((30, 0.5), (500, 0.5)):
        said = f"{pairs} pairs, correlation {known}"
        yield Case(
            "correlation over word pairs, bootstrap", said, 400, partial(correlation, pairs, known)
        )


def cases() -> Iterator[Case]:
    """All lines of the table, in order."""
    for part in (shares, means, separations, others):
        yield from part()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", help="the first words of an interval's name; all without it"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print("| interval | setting | repetitions | coverage | ± |")
    print("| --- | --- | ---: | ---: | ---: |")
    for case in cases():
        if asked.names and not any(
            case.interval.lower().startswith(name.lower()) for name in asked.names
        ):
            continue
        rng = np.random.default_rng([asked.seed, *f"{case.interval} {case.setting}".encode()])
        share_held, n = case.covered(rng, asked.scale)
        error = np.sqrt(max(share_held * (1 - share_held), 0.5 / n) / n)
        print(
            f"| {case.interval} | {case.setting} | {n:,} | {share_held:.3f} | {error:.3f} |",
            flush=True,
        )
    print(f"\n{time.process_time():.0f} s of processor time")


if __name__ == "__main__":
    main()
