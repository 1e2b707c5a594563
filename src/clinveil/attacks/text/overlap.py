"""What a released note has in common with source notes, word for word: the longest run, and the share of 6-grams.

Two figures each: against the note's own source, beside a shuffled pair (another patient's source); and against any
source, beside the same note with its words in random order. Replacing every word leaves what chance leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks, source_id
from clinveil.attacks.suffix_automaton import SuffixAutomaton, Vocabulary, common_runs, separated
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.tokens import words
from clinveil.core.types import Ints, SmallInts
from clinveil.core.words import words_beside
from clinveil.corpus.corpus import Corpus, rows
from clinveil.corpus.sample import KeySample
from clinveil.stats import bootstrap_clusters, ratio, share_by_patient, share_method
from clinveil.stats.findings import unmeasured

GRAM = 6
NOTES = 2000
WORDS = 2_000_000
NOTE_WORDS = 50_000
SOURCE = "verbatim overlap: longest common run and shared 6-grams, exact (suffix automaton)"


@attacks.register("overlap")
class Overlap(Attack):
    """Find runs of words that released notes share with their sources."""

    needs = frozenset({"released", "original"})
    words = words_beside(__file__)
    on_release = True
    order = 800

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """As `overlap`, by the crosswalk of notes where there is one."""
        assert context.released is not None and context.original is not None
        return overlap(context.released, context.original, rng, crosswalk=context.notes)


@dataclass(frozen=True)
class _Sampled:
    """Released notes: source id, patient and words of each, and what was left out."""

    sources: list[str]
    patients: Ints
    notes: list[SmallInts]
    vocabulary: Vocabulary
    detail: dict[str, Any]


def overlap(
    released: Corpus,
    source: Corpus,
    rng: Generator,
    *,
    crosswalk: Mapping[str, str] | None = None,
    notes: int = NOTES,
) -> list[Finding]:
    """Longest common run and share of 6-grams with the own source and with any source, patient bootstrap intervals.

    Streams both once. Released notes are sampled beyond `notes` notes or two million words, and cut at 50,000 words
    (both said in the detail); of the sources none is left out.

    Args:
        crosswalk: source note id of each released one; None where they are equal.
    Raises:
        InputError: a sampled note whose source is not there, or that the crosswalk does not know.
    """
    sample = _sample(released, crosswalk, notes, rng)
    if not sample.notes:
        return [
            unmeasured(f"attack.longest_run{of}", "no released notes", detail=sample.detail, source=SOURCE)
            for of in ("", "_any")
        ]
    both = [*sample.notes, *(rng.permutation(note) for note in sample.notes)]
    automaton = SuffixAutomaton(separated(both))
    wanted, kept = set(sample.sources), {}
    for note, _, text in rows(source):
        ids = sample.vocabulary.ids(words(text))
        automaton.stream(ids)
        if note in wanted:
            kept[note] = ids[:NOTE_WORDS]
    if missing := len(wanted) - len(kept):
        raise InputError(f"{missing} released notes have no source here", remedy="name the notes it was made from")
    found, half = _split(automaton.runs(), both), len(sample.notes)
    own = [common_runs(note, [kept[s]]) for note, s in zip(sample.notes, sample.sources, strict=True)]
    others = enumerate(_other_patient(sample.patients, rng).tolist())
    other = [common_runs(sample.notes[i], [kept[sample.sources[j]]]) for i, j in others if j >= 0]
    pair, order = "another patient's source", "the note's own words in random order"
    return [
        *_Against("own source", pair, sample).findings("", own, other, rng),
        *_Against("any source", order, sample).findings("_any", found[:half], found[half:], rng),
    ]


def _sample(released: Corpus, crosswalk: Mapping[str, str] | None, notes: int, rng: Generator) -> _Sampled:
    held: KeySample[tuple[str, str]] = KeySample(notes, rng)
    for note, patient, text in rows(released):
        held.offer(note, lambda p=patient, t=text: (p, t))  # type: ignore[misc]
    vocabulary, total, cut = Vocabulary(), 0, 0
    ids, sources, patients = list[SmallInts](), list[str](), list[str]()
    for note, (patient, text) in held.values.items():
        row = vocabulary.add(words(text)[: NOTE_WORDS + 1])
        total += row.size
        if total > WORDS and ids:
            break
        cut += row.size > NOTE_WORDS
        ids.append(row[:NOTE_WORDS])
        sources.append(source_id(note, crosswalk))
        patients.append(patient)
    clusters = np.unique(np.array(patients, dtype=object), return_inverse=True)[1].astype(np.int64)
    sampled = held.left_out or len(ids) < len(held.values)
    return _Sampled(sources, clusters, ids, vocabulary, {"notes": len(ids), "sampled": sampled, "notes_cut": cut})


def _split(runs: SmallInts, notes: Sequence[SmallInts]) -> list[SmallInts]:
    ends = np.cumsum([note.size + 1 for note in notes])
    return [piece[:-1] for piece in np.split(runs, ends[:-1])]


def _other_patient(patients: Ints, rng: Generator) -> Ints:
    """(n,) for each note a note of another patient, each taken once; -1 where there is none."""
    n, most = patients.size, int(np.bincount(patients).max())
    order = np.lexsort((rng.random(n), rng.permutation(patients.max() + 1)[patients]))
    other = np.empty(n, dtype=np.int64)
    other[order] = np.roll(order, -most)
    return np.where(patients[other] == patients, -1, other)


def _longest(runs: list[SmallInts]) -> Ints:
    return np.array([run.max(initial=0) for run in runs], dtype=np.int64)


def _grams(runs: list[SmallInts]) -> Ints:
    """(n_notes, 2): the 6-grams shared, and all."""
    pairs = [((run[GRAM - 1 :] >= GRAM).sum(), max(0, run.size - GRAM + 1)) for run in runs]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class _Against:
    """What released notes are held against, what the runs by chance are, and the notes looked at."""

    source: str
    chance_is: str
    sample: _Sampled

    def findings(self, suffix: str, runs: list[SmallInts], chance: list[SmallInts], rng: Generator) -> list[Finding]:
        """The longest runs and the shared 6-grams; `runs` and `chance`: of each note the run that ends at each word."""
        longest, by_chance = _longest(runs), _longest(chance)
        detail: dict[str, Any] = {"median": float(np.median(longest)), "most": int(longest.max())}
        if by_chance.size:
            detail["chance_most"] = int(by_chance.max())
        counts = np.stack([longest, np.ones_like(longest)], axis=1)
        mean = by_chance.mean() if by_chance.size else None
        first = self._finding(f"attack.longest_run{suffix}", counts, mean, detail, rng, unit="words")
        grams, other = _grams(runs), _grams(chance)
        if not grams[:, 1].sum():
            why = f"no note of {GRAM} words"
            return [first, unmeasured(f"attack.six_grams{suffix}", why, detail=self._detail, source=SOURCE)]
        rate = ratio(other) if len(other) and other[:, 1].sum() else None
        shared = {"shared": int(grams[:, 0].sum()), "notes_with_one": int((grams[:, 0] > 0).sum())}
        measure = f"attack.six_grams{suffix}"
        return [first, self._finding(measure, grams, rate, shared, rng, unit=f"{GRAM}-grams")]

    @property
    def _detail(self) -> dict[str, Any]:
        return {**self.sample.detail, "against": self.source}

    def _finding(
        self,
        measure: str,
        by_note: Ints,
        chance: float | None,
        detail: Mapping[str, Any],
        rng: Generator,
        *,
        unit: str,
    ) -> Finding:
        """The ratio of the columns of `by_note`, (n_notes, 2), with an interval over patients."""
        by_patient = np.zeros((int(self.sample.patients.max()) + 1, 2), dtype=np.int64)
        np.add.at(by_patient, self.sample.patients, by_note)
        if unit == "words":
            drawn, method = bootstrap_clusters(by_patient, ratio, rng), "bootstrap over patients, 95 %"
        else:
            drawn, method = share_by_patient(by_patient), share_method(by_patient, "patients")
        why = {} if chance is not None else {"why": "all notes are of one patient: no shuffled pair"}
        return Finding(
            measure,
            ratio(by_note),
            int(by_note[:, 1].sum()),
            "lower",
            *drawn,
            chance,
            source=SOURCE,
            detail={**self._detail, **detail, **why},
            unit=unit,
            method=method,
            chance_is=self.chance_is if chance is not None else "",
        )
