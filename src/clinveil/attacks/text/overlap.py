"""Verbatim overlap of released notes and source notes: the longest common run, and the share of common 6-grams.

Both are measured twice: against the note's own source (chance: another patient's source), and against all sources
(chance: the same note in random word order). If every word is replaced, only coincidences remain.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from clinveil.corpus.corpus import Corpus, rows
from clinveil.corpus.sample import KeySample
from clinveil.stats import bootstrap_clusters, ratio
from clinveil.stats.findings import clustered_share, unmeasured

GRAM = 6
NOTES = 2000
WORDS = 2_000_000
NOTE_WORDS = 50_000
SOURCE = "verbatim overlap: longest common run and shared 6-grams, exact (suffix automaton)"


@attacks.register("overlap")
class Overlap(Attack):
    """Find runs of words that released notes share with their sources."""

    needs = frozenset({"released", "original"})
    on_release = True
    order = 800

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run `overlap`, with the crosswalk of notes if there is one."""
        assert context.released is not None and context.original is not None
        return overlap(context.released, context.original, rng, crosswalk=context.notes)


def overlap(
    released: Corpus,
    source: Corpus,
    rng: Generator,
    *,
    crosswalk: Mapping[str, str] | None = None,
    notes: int = NOTES,
) -> list[Finding]:
    """Measure longest common runs and shared 6-grams with the own source and with any source.

    Streams both corpora once. Released notes are sampled beyond `notes` notes or two million words, and cut at 50,000
    words (both recorded in the detail); all sources are used. Intervals by bootstrap over patients.

    Args:
        crosswalk: source note id of each released one; None if they are equal.
    Raises:
        InputError: a sampled note has no source note, or is not in the crosswalk.
    """
    sample = _sample(released, crosswalk, notes, rng)
    if not sample.notes:
        names, why = ("attack.longest_run", "attack.longest_run_any"), "no released notes"
        return [unmeasured(name, why, detail=sample.detail, source=SOURCE) for name in names]
    both = [*sample.notes, *(rng.permutation(note) for note in sample.notes)]
    automaton = SuffixAutomaton(separated(both))
    wanted, own_sources = set(sample.sources), {}
    for note, _, text in rows(source):
        ids = sample.vocabulary.ids(words(text))
        automaton.stream(ids)
        if note in wanted:
            own_sources[note] = ids[:NOTE_WORDS]
    if missing := len(wanted) - len(own_sources):
        raise InputError(f"{missing} released notes have no source note", hint="pass the source notes of this release")
    found = [runs[:-1] for runs in np.split(automaton.runs(), np.cumsum([note.size + 1 for note in both])[:-1])]
    own = [common_runs(note, [own_sources[of]]) for note, of in zip(sample.notes, sample.sources, strict=True)]
    pairs = enumerate(_other_patient(sample.patients, rng).tolist())
    other = [common_runs(sample.notes[i], [own_sources[sample.sources[j]]]) for i, j in pairs if j >= 0]
    half, order = len(sample.notes), "the note's own words in random order"
    return [
        *sample.findings("", "own source", own, other, "another patient's source", rng),
        *sample.findings("_any", "any source", found[:half], found[half:], order, rng),
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


@dataclass(frozen=True)
class _Sampled:
    """Sampled released notes: source id, patient and words of each, and what was left out."""

    sources: list[str]
    patients: Ints
    notes: list[SmallInts]
    vocabulary: Vocabulary
    detail: dict[str, Any]

    def findings(
        self,
        suffix: str,
        against: str,
        runs: list[SmallInts],
        by_chance: list[SmallInts],
        chance_is: str,
        rng: Generator,
    ) -> list[Finding]:
        """Return longest runs and shared 6-grams; `runs`, `by_chance`: the run that ends at each word of each note."""
        detail = {**self.detail, "against": against}
        longest, other = (np.array([run.max(initial=0) for run in of]) for of in (runs, by_chance))
        maxima = {**detail, "median": float(np.median(longest)), "most": int(longest.max())}
        if other.size:
            maxima["chance_most"] = int(other.max())
        with_chance = _with_chance(float(other.mean()) if other.size else None, chance_is, maxima)
        first = self._mean_run(f"attack.longest_run{suffix}", longest, with_chance, rng)
        name, grams, chance = f"attack.six_grams{suffix}", _grams(runs), _grams(by_chance)
        if not grams[:, 1].sum():
            return [first, unmeasured(name, f"no note of {GRAM} words", detail=detail, source=SOURCE)]
        detail |= {"shared": int(grams[:, 0].sum()), "notes_with_one": int((grams[:, 0] > 0).sum())}
        with_chance = _with_chance(ratio(chance) if chance[:, 1].sum() else None, chance_is, detail)
        about = {"over": "patients", "unit": f"{GRAM}-grams", "source": SOURCE, "count": None, **with_chance}
        return [first, clustered_share(name, self._by_patient(grams), **about)]

    def _mean_run(self, measure: str, longest: Ints, with_chance: dict[str, Any], rng: Generator) -> Finding:
        by_patient = self._by_patient(np.stack([longest, np.ones_like(longest)], axis=1))
        ends, method = bootstrap_clusters(by_patient, ratio, rng), "bootstrap over patients, 95 %"
        about = {"source": SOURCE, "unit": "words", "method": method, **with_chance}
        return Finding(measure, ratio(by_patient), longest.size, "lower", *ends, **about)

    def _by_patient(self, by_note: Ints) -> Ints:
        """Return sums by patient, (n_patients, 2), of (n_notes, 2)."""
        found = np.zeros((int(self.patients.max()) + 1, 2), dtype=np.int64)
        np.add.at(found, self.patients, by_note)
        return found


def _with_chance(chance: float | None, chance_is: str, detail: dict[str, Any]) -> dict[str, Any]:
    if chance is None:
        return {"detail": {**detail, "why": "all notes are of one patient, so no pair can be shuffled"}}
    return {"detail": detail, "chance": chance, "chance_is": chance_is}


def _grams(runs: list[SmallInts]) -> Ints:
    """Return shared and all 6-grams of each note, (n_notes, 2)."""
    pairs = [((run[GRAM - 1 :] >= GRAM).sum(), max(0, run.size - GRAM + 1)) for run in runs]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _other_patient(patients: Ints, rng: Generator) -> Ints:
    """Return a note of another patient for each note, each used once, (n,); -1 without one."""
    n, maxima = patients.size, int(np.bincount(patients).max())
    order = np.lexsort((rng.random(n), rng.permutation(patients.max() + 1)[patients]))
    other = np.empty(n, dtype=np.int64)
    other[order] = np.roll(order, -maxima)
    return np.where(patients[other] == patients, -1, other)
