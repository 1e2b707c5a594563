"""Compare word vectors with human scores of word pairs (papers A, C).

The correlation of cosines with human scores, by one of two protocols.

*jamia* (paper A, after Wang et al. 2018): Pearson; a term of several words is the mean of their
vectors; unknown words get a vector from fastText's subwords; pairs that still lack one are left out
and counted. *clinicalnlp* (paper C): Spearman; single words that occur at least m times in the
*real* training text, the same pairs for all vectors; missing similarities are drawn from [-1, 1),
and the correlation is averaged over 100 draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator, default_rng

from clinveil.core import (
    SEED,
    Finding,
    InputError,
    LabelledNotesSettings,
    Mask,
    Number,
    Say,
    UsageError,
    group,
    setting,
    words,
)
from clinveil.stats import NO_EVIDENCE, MeasureSpec, permutation_p
from clinveil.utility.evaluations import (
    VECTORS,
    Evaluated,
    Evaluation,
    EvaluationInput,
    as_corpus,
    as_vectors,
    name_of,
)
from clinveil.utility.pairs import (
    FEWEST_PAIRS,
    Correlated,
    PairList,
    PairVectors,
    Protocol,
    Statistic,
    pair_vectors,
    read_pairs,
)
from clinveil.vectors import Vectors

DRAWS = 1_000
SHUFFLES = 100
AT_CHANCE = 0.05  # P above which a correlation is not evidence
SOURCE = {
    "jamia": "paper A, Table 3 and Figure 1; protocol of Wang et al. 2018",
    "clinicalnlp": "paper C, section 3.3; protocol of its released code",
}
STATISTIC: dict[Protocol, Statistic] = {"jamia": "pearson", "clinicalnlp": "spearman"}


@dataclass(frozen=True)
class SimilarityTask:
    """Selection of pairs and the protocol of scoring.

    Attributes:
        subwords: fastText vectors of the same text, for unknown words (jamia).
        frequencies: occurrences of each word in the real training text (required by clinicalnlp).
        min_count: m of clinicalnlp (paper: 20 for the small set, 30 for the large one).
        draws: bootstrap samples of the pairs.
    """

    protocol: Protocol = "jamia"
    subwords: Vectors | None = None
    frequencies: Mapping[str, int] | None = None
    min_count: int = 20
    draws: int = DRAWS

    @property
    def random(self) -> bool:
        """Whether a missing similarity is drawn at random; otherwise the pair is left out."""
        return self.protocol == "clinicalnlp"

    def wanted(self, pairs: PairList) -> Mask:
        """Return the selected pairs, (n_pairs,): all, or those of two frequent single words
        (clinicalnlp).

        Raises InputError for clinicalnlp without frequencies.
        """
        if self.protocol != "clinicalnlp":
            return np.ones(len(pairs), dtype=np.bool_)
        if self.frequencies is None:
            raise InputError(
                "protocol clinicalnlp requires the real training notes",
                hint="pass them with --notes",
            )
        forms = [[words(term) for term in pair] for pair in pairs.terms]
        counts = self.frequencies
        often = [
            all(len(f) == 1 and counts.get(f[0], 0) >= self.min_count for f in pair)
            for pair in forms
        ]
        return np.array(often, dtype=np.bool_)


def similarity(
    vectors: Vectors, pairs: PairList, rng: Generator, settings: SimilarityTask | None = None
) -> list[Finding]:
    """Return the correlation of cosines with human scores.

    Returns:
        `utility.similarity`: chance is 0, with 95 % of 999 permutations of the scores in the
            numbers; the control is the
        mean over 100 permutations of the vectors. They count pairs: in the list, selected,
        of single words, covered, covered by subwords, with a missing word, scored, left out,
        random. If some pairs need subwords, there is a second finding for the others. Fewer than 20
        covered pairs, or a correlation that is not above chance (P > .05), are not evidence: no
        value and no interval, with the correlation in the numbers.

    Raises InputError: clinicalnlp without frequencies, or `subwords` without subword vectors.
    """
    how = settings or SimilarityTask()
    wanted = how.wanted(pairs)
    looked_up = pair_vectors(vectors, pairs, how.protocol, how.subwords)
    selected = _Selected(pairs, looked_up, wanted, how)
    finding = selected.correlation(rng)
    if not (selected.covered & looked_up.from_subwords).any():
        return [finding]
    others = similarity(vectors, pairs, rng, SimilarityTask(draws=how.draws))
    series = {"all pairs": finding, "pairs that need no subwords": others[0]}
    return [replace(f, series=name) for name, f in series.items()]


@dataclass(frozen=True)
class _Selected:
    """Pairs, their vectors, and the selection of pairs."""

    pairs: PairList
    looked_up: PairVectors
    wanted: Mask
    task: SimilarityTask

    @property
    def covered(self) -> Mask:
        return self.wanted & ~np.isnan(self.looked_up.cosines())

    @property
    def scored(self) -> Mask:
        """The pairs of the correlation."""
        return self.wanted if self.task.random else self.covered

    @cached_property
    def numbers(self) -> dict[str, Number]:
        """Numbers of pairs: in the list, selected (`asked`), of single words, and with a similarity
        (`covered`); of these from subwords, with a missing word, and of a term with itself; of the
        correlation (`scored`); without a similarity, left out or drawn at random.
        """
        covered = self.covered
        wanted = self.wanted
        single = np.array(
            [all(len(words(term)) == 1 for term in pair) for pair in self.pairs.terms],
            dtype=np.bool_,
        )
        gaps = int((wanted & ~covered).sum())
        same_term = self.looked_up.evaluated.first == self.looked_up.evaluated.second
        numbers: dict[str, Number] = {
            "pairs": len(self.pairs),
            "asked": int(wanted.sum()),
            "single": int((wanted & single).sum()),
            "covered": int(covered.sum()),
            "by_subwords": int((covered & self.looked_up.from_subwords).sum()),
            "partial": int((covered & self.looked_up.partial()).sum()),
            "identical": int((covered & same_term).sum()),
            "scored": int(self.scored.sum()),
            "left_out": 0 if self.task.random else gaps,
            "random": gaps if self.task.random else 0,
        }
        if self.task.random:
            numbers["min_count"] = self.task.min_count
        return numbers

    def correlation(self, rng: Generator) -> Finding:
        n_covered = int(self.covered.sum())
        if n_covered < FEWEST_PAIRS:
            scored_pairs = f"{n_covered} of {self.wanted.sum()} pairs have a similarity"
            return self._without_value(
                f"{NO_EVIDENCE}: {scored_pairs}; {FEWEST_PAIRS} are required"
            )
        scored = self.scored
        correlated = Correlated(
            self.looked_up.cosines()[scored],
            self.pairs.scores[scored],
            STATISTIC[self.task.protocol],
            random=self.task.random,
        )
        value = correlated.value(rng)
        resampled = correlated.resampled(rng, self.task.draws)
        if np.isnan(value) or not resampled.size:
            return self._without_value("the similarities or the scores are constant")
        null = correlated.permuted(rng)
        control = self._control(rng, correlated, scored)
        low, high = np.quantile(resampled, [0.025, 0.975])
        chance_low, chance_high = np.quantile(null, [0.025, 0.975]).tolist()
        finding = replace(
            self._without_value("not measured"),
            value=value,
            low=low,
            high=high,
            method="bootstrap over word pairs, 95 %",
            numbers={**self.numbers, "chance_low": chance_low, "chance_high": chance_high},
            why="",
            chance=0.0,
            chance_is="no correlation",
            p=permutation_p(value, null),
            p_is="human scores permuted, one-sided",
            control=control,
            control_is="" if control is None else _CONTROL,
            control_kind=None if control is None else "negative",
        )
        return finding if (finding.p or 0.0) <= AT_CHANCE else _not_above_chance(finding)

    def _without_value(self, why: str) -> Finding:
        spec = MeasureSpec(
            measure="utility.similarity",
            better="higher",
            source=SOURCE[self.task.protocol],
            unit="word pairs",
        )
        labels = (self.pairs.name, f"{STATISTIC[self.task.protocol]} correlation")
        return spec.missing(why, int(self.scored.sum()), labels=labels, numbers=self.numbers)

    def _control(self, rng: Generator, correlated: Correlated, scored: Mask) -> float | None:
        """Return the mean correlation with permuted vectors; None if it is always undefined."""
        permuted = [self.looked_up.permuted(rng).cosines()[scored] for _ in range(SHUFFLES)]
        values = correlated.of(np.array(permuted), rng)
        values = values[~np.isnan(values)]
        return float(values.mean()) if values.size else None


def _not_above_chance(finding: Finding) -> Finding:
    """Return the finding of a correlation with the correlation in its numbers instead of a
    value.
    """
    why = (
        f"{NO_EVIDENCE}: the correlation ({finding.value:.3f}, {finding.n} pairs) is not above"
        f" chance (P {finding.p:.2f})"
    )
    numbers = {**finding.numbers, "correlation": finding.value}
    return replace(finding, value=None, low=None, high=None, method="", numbers=numbers, why=why)


_CONTROL = (
    "vectors permuted among the terms; a pair of a term with itself keeps its similarity of 1"
)


class Similarity(Evaluation):
    """Correlate the cosines of word pairs with human scores; report coverage, interval, chance and
    control.
    """

    inputs: ClassVar[Mapping[str, EvaluationInput]] = {
        "vectors": VECTORS,
        "pairs": EvaluationInput(
            "Word pairs: two terms and a score; repeatable.", "--pairs", required=True, many=True
        ),
        "subwords": EvaluationInput(
            "fastText vectors of the same text, for missing words.", "--subwords"
        ),
        "notes": EvaluationInput("Real notes, to count words (protocol clinicalnlp).", "--notes"),
    }
    shown = "protocol seed"
    notes: LabelledNotesSettings = group(LabelledNotesSettings)
    seed: int | None = SEED
    protocol: Literal["jamia", "clinicalnlp"] = setting(
        "jamia", "Protocol of paper A (Pearson) or of paper C (Spearman)."
    )
    min_count: int = setting(
        20, "Minimum occurrences of both words in the real notes (clinicalnlp).", ge=1
    )
    draws: int = setting(1_000, "Bootstrap samples of the pairs.", ge=100)

    def __call__(
        self, arguments: Mapping[str, Any], seed: int = 1, say: Say = lambda line: None
    ) -> Evaluated:
        """Return the findings of every list."""
        notes = arguments.get("notes")
        subwords = arguments.get("subwords")
        if self.protocol == "jamia" and notes is not None:
            raise UsageError("--notes requires --protocol clinicalnlp")
        if self.protocol == "clinicalnlp" and subwords is not None:
            raise UsageError("--subwords requires --protocol jamia")
        lists = [read_pairs(p) if isinstance(p, Path) else p for p in arguments["pairs"]]
        loaded = as_vectors(arguments["vectors"])
        unknown = (
            as_vectors(subwords)
            if subwords is not None
            else loaded
            if loaded.subwords is not None
            else None
        )
        counts, remarks = self._counts(notes, loaded)
        task = SimilarityTask(self.protocol, unknown, counts, self.min_count, self.draws)
        findings = [
            finding
            for pairs in lists
            for finding in similarity(loaded, pairs, default_rng(seed), task)
        ]
        title = (
            f"{name_of(arguments['vectors'], 'vectors')}, protocol {self.protocol} (seed {seed})"
        )
        return Evaluated(
            findings, title, lines=tuple(dict.fromkeys(map(_counted, findings))), remarks=remarks
        )

    def _counts(
        self, notes: Any, vectors: Vectors
    ) -> tuple[dict[str, int] | None, tuple[str, ...]]:
        """Return word counts of the real notes, or of the training notes of the vectors, with a
        remark.
        """
        if self.protocol != "clinicalnlp" or (notes is None and vectors.counts is None):
            return None, ()
        if notes is None and vectors.counts is not None:
            remark = (
                "clinveil: word counts are those of the vectors' training notes (pass --notes for"
                " others)"
            )
            return dict(zip(vectors.words, vectors.counts.tolist(), strict=True)), (remark,)
        from tempfile import TemporaryDirectory

        from clinveil.vectors import count_words

        with TemporaryDirectory(prefix="clinveil-counts") as scratch:
            counted = count_words(as_corpus(notes, self.notes), Path(scratch))
            return dict(zip(counted.words, counted.counts.tolist(), strict=True)), ()


def _counted(finding: Finding) -> str:
    """Return one line on the coverage of a list."""
    n = finding.numbers
    name = ", ".join(filter(None, (finding.labels[0], finding.series)))
    return (
        f"{name}: {n['pairs']} pairs, {n['asked']} used ({n['single']} of single words),"
        f" {n['covered']} covered ({n['by_subwords']} by subwords, {n['partial']} with a missing"
        f" word); others: {n['left_out']} left out, {n['random']} at random"
    )
