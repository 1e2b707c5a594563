"""Tests per patient: are the distances to their own diagnoses unusual compared with random groups of diagnoses?

Three tests answer three questions. With random diagnoses (the paper's), a patient can be "significant" for having
common diagnoses. Matched diagnoses exclude prevalence and description length. Other patients' names in place of their
own exclude everything that a set of diagnoses has in common with all names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, comb
from typing import Any

from numpy.random import Generator

from clinveil.attacks.vectors._groups import SWAPPED, Groups
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints
from clinveil.stats import benjamini_hochberg, holm
from clinveil.stats.findings import proportion
from clinveil.stats.strata import name_ranks

PAPER = "JMIR 2020;22(7):e18055"
LEVEL = 0.05
PAPER_DRAWS = 1_000
MATCHED = "diagnoses as prevalent and described in as many words"
RANDOM = "random diagnoses"
PAPERS = "random diagnoses, the paper's 1,000 draws and count/n"
NAMES = "other patients' names"
_ANY = "Is the patient's name at another distance from their own diagnoses than from equally many random diagnoses?"
_COMMON: dict[str, Any] = {
    "method": "Clopper-Pearson, 95 %, as if patients were independent",
    "chance_is": "the largest mean share that the correction allows without any association",
    "control_is": f"the same test with {SWAPPED}",
    "control_kind": "negative",
}
_QUESTIONS = {
    RANDOM: _ANY,
    PAPERS: _ANY,
    MATCHED: "Is the patient's name at another distance from their own diagnoses than from equally common diagnoses "
    "with descriptions of the same length?",
    NAMES: "Is the patient's own name at a more unusual distance from their diagnoses than other patients' names?",
}


def family_wise_error(n_patients: int, draws: int) -> float:
    """Return P of a false alarm under the complete null with P = count / n and Holm, for independent patients, no ties.

    Holm's first step rejects a count of at most level * draws / patients, and under the null each count from 0 to
    `draws` is equally likely.
    """
    most = int(LEVEL * draws / n_patients * (1 + 1e-12))
    return float(1 - (1 - (most + 1) / (draws + 1)) ** n_patients)


def default_draws(n_patients: int) -> int:
    """Return the number of draws for which Holm's first step can reject: patients / 0.05, minus one.

    1 / (n + 1) <= 0.05 / patients; for 638 patients n is 12,759.
    """
    return ceil(n_patients / LEVEL - 1e-9) - 1


@dataclass(frozen=True)
class PatientTests:
    """The tests of each patient under one metric.

    Attributes:
        distances: (n_patients, n_codes) of names to diagnoses. groups: who has which diagnosis.
        swap: (n_patients,) the row whose name each patient gets in the control.
        draws: of random groups; None for `default_draws`. threads: number of threads; no effect on results.
    """

    distances: Doubles
    groups: Groups
    swap: Ints
    metric: str
    draws: int | None = None
    threads: int = 2

    def findings(self, rng: Generator, *, paper_p: bool = False) -> Iterator[Finding]:
        """Yield the findings of all tests; with `paper_p` also that of the paper's draws, P = count / n."""
        from clinveil.stats.group_draws import Matching, matched_p, uniform_counts  # slow import

        n, draws = len(self.distances), self.draws or default_draws(len(self.distances))
        has, matching = self.groups.has, Matching.of(self.groups.prevalence, self.groups.lengths, len(self.groups))

        def uniform(distances: Doubles, draws: int) -> Ints:
            return uniform_counts(distances, has, draws, rng, threads=self.threads)

        def matched(distances: Doubles) -> Doubles:
            return matched_p(distances, has, matching, draws, rng, threads=self.threads)

        yield self._finding(RANDOM, lambda d: (uniform(d, draws) + 1) / (draws + 1), holm, draws)
        if paper_p:
            yield self._finding(PAPERS, lambda d: uniform(d, PAPER_DRAWS) / PAPER_DRAWS, holm, PAPER_DRAWS)
        yield self._finding(MATCHED, matched, holm, draws)
        yield self._finding(NAMES, self._names, benjamini_hochberg, n)

    def _names(self, distances: Doubles) -> Doubles:
        frequency = self.groups.frequency
        if frequency is not None and distances is not self.distances:
            frequency = frequency[self.swap]  # the frequency of the swapped name
        return name_ranks(distances, self.groups.has, frequency)

    def _finding(
        self, series: str, test: Callable[[Doubles], Doubles], adjust: Callable[[Doubles], Doubles], draws: int
    ) -> Finding:
        n = len(self.distances)
        p, control_p = test(self.distances), test(self.distances[self.swap])
        count, control = (int((adjust(values) <= LEVEL).sum()) for values in (p, control_p))
        detail: dict[str, Any] = {
            "metric": self.metric,
            "series": series,
            "draws": draws,
            "correction": "Benjamini-Hochberg" if adjust is benjamini_hochberg else "Holm-Bonferroni",
            "unadjusted": float((p <= LEVEL).mean()),
            "unadjusted_control": float((control_p <= LEVEL).mean()),
            "smallest_p": float(p.min()),
            **self._caveats(series, draws),
        }
        # P = count / n rejects a count of 0, for which it gives P = 0.
        chance = {PAPERS: 1 / (PAPER_DRAWS + 1), NAMES: LEVEL}.get(series, LEVEL / n)
        source = f"{PAPER}, Experiment 2b, Table 3" if series != NAMES else "Benjamini & Hochberg 1995"
        about: dict[str, Any] = {"source": source, "detail": detail, "question": _QUESTIONS[series], **_COMMON}
        measure = "attack.association_patients"
        return proportion(measure, count, n, over="patients", chance=chance, control=control / n, **about)

    def _caveats(self, series: str, draws: int) -> dict[str, Any]:
        n = len(self.distances)
        if series == NAMES:
            message = f"no P can be below 1/{n}, so Holm could never reject; adjusted for name frequency"
            return {"warning": message}
        if series == MATCHED:
            message = "assumes that diagnoses are independent given prevalence, which comorbid diagnoses are not"
            return {"warning": message}
        if series == PAPERS:
            error = family_wise_error(n, draws)
            can_reject = "could never reject" if 1 / (draws + 1) > LEVEL / n else "can reject"
            message = f"with count/n and {draws} draws the probability of any false alarm without an association is "
            message += f"{error:.0%}; with (count+1)/(n+1) Holm over {n} patients {can_reject}"
            return {"family_wise_error": error, "warning": message}
        message = "common diagnoses and long descriptions are at other distances from every name, so this rejects "
        message += "without any link between this name and these diagnoses"
        return {"could_reject": self._could_reject(n), "warning": message}

    def _could_reject(self, n: int) -> int:
        """Return the number of patients with enough groups of their size for Holm's first step to reject."""
        m = len(self.groups.codes)
        smallest_p = {size: 1 / comb(m, size) for size in set(self.groups.sizes.tolist())}
        return sum(smallest_p[size] <= LEVEL / n for size in self.groups.sizes.tolist())
