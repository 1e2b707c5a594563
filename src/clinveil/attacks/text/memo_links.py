"""Two released notes of one patient, found by the outputs that a memo repeats in both.

The attacker has the released notes without their ids, and lays each beside all others: the cosine of the sets of words,
each word the more the fewer notes have it (tf-idf; Salton and Buckley 1988). What notes of one patient have in common
without a memo, topic and style, is the control: the same notes with fresh draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from clinveil.attacks.attack import Attack, Context, attacks, source_id
from clinveil.attacks.suffix_automaton import Vocabulary
from clinveil.attacks.text.linkage.matchers import unit
from clinveil.channel.apply import Obfuscator
from clinveil.channel.channel import Channel
from clinveil.core.finding import Detail, Finding
from clinveil.core.keys import Key
from clinveil.core.settings import flag
from clinveil.core.tokens import words
from clinveil.core.types import Doubles, Ints
from clinveil.core.words import words_beside
from clinveil.corpus.corpus import TEXT, Corpus, corpus_of_texts, rows
from clinveil.corpus.sample import KeySample
from clinveil.stats import bootstrap_clusters, ratio
from clinveil.stats.findings import clustered_share, unmeasured

TOP, AREA = "attack.memo_links", "attack.memo_links_auc"
SOURCE = "record linkage by tf-idf (Salton and Buckley 1988) over the draws that a memo repeats"
CONTROL = "the same notes with fresh draws: what topic and style alone give"
_BLOCK = 256


@attacks.register("memo-links")
class MemoLinks(Attack):
    """Find for each released note another one of its patient, by the words that both have."""

    needs = frozenset({"released"})
    words = words_beside(__file__)
    on_release = True
    order = 420
    sample: int = flag(2000, "Released notes that are looked at, of whole patients.", ge=2)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """With the channel and the notes as they entered it also the control."""
        assert context.released is not None
        sample = _sample(context.released, self.sample, rng)
        control = None
        if context.channel is not None and context.entered is not None and context.notes is not None:
            sources = {source_id(note, context.notes): i for i, note in enumerate(sample.ids)}
            control = _afresh(context.channel, context.entered, sources, sample, rng)
        detail = {"scope": context.channel.policy.scope} if context.channel is not None else {}
        return memo_links(sample, control, rng, detail)


@dataclass(frozen=True)
class Notes:
    """Notes side by side: ids, the patient of each as a number, the distinct words of each as numbers."""

    ids: Sequence[str]
    patients: Ints
    words: Sequence[Ints]


def _numbered(texts: Sequence[str]) -> list[Ints]:
    known = Vocabulary()
    return [np.unique(known.add(words(text))).astype(np.int64) for text in texts]


def _sample(released: Corpus, notes: int, rng: Generator) -> Notes:
    """Notes of patients drawn by chance, as many whole patients as there is room for."""
    held: KeySample[list[tuple[str, str]]] = KeySample(notes, rng)
    for note, patient, text in rows(released):
        if (own := held.offer(patient or note, list[tuple[str, str]])) is not None:
            own.append((note, text))
    ids, patients, texts = list[str](), list[int](), list[str]()
    for number, own in enumerate(held.values.values()):
        if ids and len(ids) + len(own) > notes:
            break
        ids += [note for note, _ in own]
        texts += [text for _, text in own]
        patients += [number] * len(own)
    return Notes(ids, np.array(patients, dtype=np.int64), _numbered(texts))


def _afresh(channel: Channel, entered: Corpus, sources: Mapping[str, int], sample: Notes, rng: Generator) -> Notes:
    """The same notes with a draw for each place; `sources`: the place in the sample of each source note."""
    texts = [""] * len(sample.ids)
    for note, _, text in rows(entered):
        if note in sources:
            texts[sources[note]] = text
    corpus = corpus_of_texts(texts)
    fresh = channel.under(scope="occurrence", layout="plain", numbers="drop")
    obfuscate = Obfuscator(fresh, Key(rng.bytes(32)))
    written = [text for batch in corpus.batches() for text in obfuscate(batch).batch.column(TEXT).to_pylist()]
    return replace(sample, words=_numbered(written))


def memo_links(sample: Notes, control: Notes | None, rng: Generator, detail: Detail | None = None) -> list[Finding]:
    """How often a note's nearest other one is of its patient, and how high those of its patient stand among all.

    Only notes whose patient has others in the sample are asked about; all are there to be mistaken for them.

    Returns:
        Top-1 by patient (interval of clustered shares) and area under the curve (bootstrap over patients).
    """
    said: dict[str, Any] = {"source": SOURCE, "unit": "notes", "detail": {"among": len(sample.ids), **(detail or {})}}
    if len(np.unique(sample.patients)) == len(sample.ids):
        return [unmeasured(name, "no patient has two notes in the release", **said) for name in (TOP, AREA)]
    asked, beside = Scores.of(sample), [None, None]
    if control is not None:
        own = Scores.of(control)
        beside, said["control_is"], said["control_kind"] = [own.first.mean(), own.area.mean()], CONTROL, "negative"
    hits, areas = _by_patient(asked.patients, asked.first).astype(np.int64), _by_patient(asked.patients, asked.area)
    chance = "another note of the sample, taken blindly"
    top = clustered_share(
        TOP, hits, over="patients", chance=float(asked.blind.mean()), chance_is=chance, control=beside[0], **said
    )
    ends, method = bootstrap_clusters(areas, ratio, rng), "bootstrap over patients, 95 %"
    about = {"chance": 0.5, "chance_is": "scores without order", "control": beside[1], "method": method, **said}
    return [top, Finding(AREA, ratio(areas), asked.patients.size, "lower", *ends, **about)]


@dataclass(frozen=True)
class Scores:
    """Of each note that is asked about: patient, and (n,) whether the nearest note is of it, area, blind chance."""

    patients: Ints
    first: Ints
    area: Doubles
    blind: Doubles

    @classmethod
    def of(cls, notes: Notes) -> Scores:
        """Each note with all others by cosine; of equal ones the first in the sample is the nearest."""
        table, patients = _weighted(notes.words), notes.patients
        others = np.bincount(patients)[patients] - 1
        asked = np.flatnonzero(others > 0)
        found = [
            _placed(np.asarray((table[some] @ table.T).todense()), some, patients)
            for some in np.array_split(asked, max(1, -(-asked.size // _BLOCK)))
        ]
        first, area = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return cls(patients[asked], first, area, others[asked] / max(1, len(patients) - 1))


def _weighted(words: Sequence[Ints]) -> csr_matrix:
    """Notes by words, (n_notes, n_words), at length 1: log(n / notes that have the word)."""
    starts, every = np.cumsum([0, *(note.size for note in words)]), np.concatenate([np.zeros(0, np.int64), *words])
    shape = (len(words), int(every.max(initial=0)) + 1)
    weight = np.log(len(words) / np.maximum(1, np.bincount(every, minlength=shape[1])))
    table = csr_matrix((weight[every], every, starts), shape=shape)
    return csr_matrix(unit(table))


def _placed(scores: Doubles, rows_: Ints, patients: Ints) -> tuple[Ints, Doubles]:
    """Of some notes whether the best score (n, n_notes) is of their patient, and the area of their patient's scores."""
    same = patients == patients[rows_, None]
    same[np.arange(rows_.size), rows_] = False
    scores[np.arange(rows_.size), rows_] = -1.0
    first = same[np.arange(rows_.size), scores.argmax(axis=1)]
    area = [
        _area(row[own], row[other])
        for row, own, other in zip(scores, same, patients != patients[rows_, None], strict=True)
    ]
    return first.astype(np.int64), np.array(area, dtype=np.float64)


def _area(own: Doubles, other: Doubles) -> float:
    """P(own score above another), ties by half; a half where there is no other."""
    ranked = np.sort(other)
    below = np.searchsorted(ranked, own, side="left") + np.searchsorted(ranked, own, side="right")
    return float(below.mean() / (2 * ranked.size)) if ranked.size else 0.5


def _by_patient(patients: Ints, values: NDArray[Any]) -> Doubles:
    """(n_patients, 2) sums of the values, and how many."""
    _, number = np.unique(patients, return_inverse=True)
    return np.stack([np.bincount(number, values), np.bincount(number)], axis=1)
