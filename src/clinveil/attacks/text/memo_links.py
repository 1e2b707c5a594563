"""Link released notes of the same patient by the replacements that the substitution scope repeats in them.

The attacker has the released notes without ids and compares each with all others: the cosine of the sets of words, with
weights that are higher for words in fewer notes (tf-idf; Salton and Buckley 1988). Topic and style of one patient's
notes are similar in any case; the control therefore uses the same notes with fresh draws.
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
from clinveil.corpus.corpus import TEXT, Corpus, corpus_of_texts, rows
from clinveil.corpus.sample import KeySample
from clinveil.stats import bootstrap_clusters, ratio
from clinveil.stats.findings import clustered_share, unmeasured

TOP, AREA = "attack.memo_links", "attack.memo_links_auc"
SOURCE = "record linkage by tf-idf (Salton and Buckley 1988) over the draws that the substitution scope repeats"
CONTROL = "the same notes with fresh draws: similarity of topic and style alone"
_BLOCK = 256


@attacks.register("memo-links")
class MemoLinks(Attack):
    """Find, for each released note, another note of the same patient by their common words."""

    needs = frozenset({"released"})
    on_release = True
    order = 420
    sample: int = flag(2000, "Released notes in the sample, of complete patients.", ge=2)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack; with the channel and the notes that entered it, also the control."""
        assert context.released is not None
        sample = _sample(context.released, self.sample, rng)
        control = None
        if context.channel is not None and context.entered is not None and context.notes is not None:
            sources = {source_id(note, context.notes): i for i, note in enumerate(sample.ids)}
            control = _redrawn(context.channel, context.entered, sources, sample, rng)
        detail = {"scope": context.channel.policy.scope} if context.channel is not None else {}
        return memo_links(sample, control, rng, detail)


@dataclass(frozen=True)
class Notes:
    """A list of notes: ids, patient numbers, and the distinct words of each note as numbers."""

    ids: Sequence[str]
    patients: Ints
    words: Sequence[Ints]


def _numbered(texts: Sequence[str]) -> list[Ints]:
    known = Vocabulary()
    return [np.unique(known.add(words(text))).astype(np.int64) for text in texts]


def _sample(released: Corpus, notes: int, rng: Generator) -> Notes:
    """Sample notes of random patients, as many complete patients as fit."""
    sample_: KeySample[list[tuple[str, str]]] = KeySample(notes, rng)
    for note, patient, text in rows(released):
        if (own := sample_.offer(patient or note, list[tuple[str, str]])) is not None:
            own.append((note, text))
    ids, patients, texts = list[str](), list[int](), list[str]()
    for number, own in enumerate(sample_.values.values()):
        if ids and len(ids) + len(own) > notes:
            break
        ids += [note for note, _ in own]
        texts += [text for _, text in own]
        patients += [number] * len(own)
    return Notes(ids, np.array(patients, dtype=np.int64), _numbered(texts))


def _redrawn(channel: Channel, entered: Corpus, sources: Mapping[str, int], sample: Notes, rng: Generator) -> Notes:
    """Return the same notes with an independent draw for each word; `sources`: sample index of each source note."""
    texts = [""] * len(sample.ids)
    for note, _, text in rows(entered):
        if note in sources:
            texts[sources[note]] = text
    corpus = corpus_of_texts(texts)
    fresh = channel.under(scope="occurrence", layout="plain", numbers="drop")
    obfuscate = Obfuscator(fresh, Key(rng.bytes(32)))
    released_texts = [text for batch in corpus.batches() for text in obfuscate(batch).batch.column(TEXT).to_pylist()]
    return replace(sample, words=_numbered(released_texts))


def memo_links(sample: Notes, control: Notes | None, rng: Generator, detail: Detail | None = None) -> list[Finding]:
    """Measure how often the most similar note is of the same patient, and how high that patient's notes rank.

    Only notes of patients with other notes in the sample are tested; all notes are candidates.

    Returns:
        Top-1 by patient (interval of clustered shares) and area under the curve (bootstrap over patients).
    """
    about: dict[str, Any] = {"source": SOURCE, "unit": "notes", "detail": {"among": len(sample.ids), **(detail or {})}}
    if len(np.unique(sample.patients)) == len(sample.ids):
        return [unmeasured(name, "no patient has two notes in the release", **about) for name in (TOP, AREA)]
    measured, controls = Scores.of(sample), [None, None]
    if control is not None:
        own = Scores.of(control)
        controls, about["control_is"], about["control_kind"] = [own.first.mean(), own.area.mean()], CONTROL, "negative"
    hits, areas = (
        _by_patient(measured.patients, measured.first).astype(np.int64),
        _by_patient(measured.patients, measured.area),
    )
    chance = "a random other note of the sample"
    top = clustered_share(
        TOP, hits, over="patients", chance=float(measured.blind.mean()), chance_is=chance, control=controls[0], **about
    )
    ends, method = bootstrap_clusters(areas, ratio, rng), "bootstrap over patients, 95 %"
    about = {"chance": 0.5, "chance_is": "scores in random order", "control": controls[1], "method": method, **about}
    return [top, Finding(AREA, ratio(areas), measured.patients.size, "lower", *ends, **about)]


@dataclass(frozen=True)
class Scores:
    """Per tested note, (n,): patient, whether the most similar note is of that patient, area, and blind chance."""

    patients: Ints
    first: Ints
    area: Doubles
    blind: Doubles

    @classmethod
    def of(cls, notes: Notes) -> Scores:
        """Compare each note with all others by cosine; of equal scores the first in the sample wins."""
        table, patients = _weighted(notes.words), notes.patients
        others = np.bincount(patients)[patients] - 1
        measured = np.flatnonzero(others > 0)
        found = [
            _ranked(np.asarray((table[some] @ table.T).todense()), some, patients)
            for some in np.array_split(measured, max(1, -(-measured.size // _BLOCK)))
        ]
        first, area = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return cls(patients[measured], first, area, others[measured] / max(1, len(patients) - 1))


def _weighted(words: Sequence[Ints]) -> csr_matrix:
    """Return notes by words, (n_notes, n_words), weighted by log(n / notes with the word) and normalized."""
    starts, every = np.cumsum([0, *(note.size for note in words)]), np.concatenate([np.zeros(0, np.int64), *words])
    shape = (len(words), int(every.max(initial=0)) + 1)
    weight = np.log(len(words) / np.maximum(1, np.bincount(every, minlength=shape[1])))
    table = csr_matrix((weight[every], every, starts), shape=shape)
    return csr_matrix(unit(table))


def _ranked(scores: Doubles, indices: Ints, patients: Ints) -> tuple[Ints, Doubles]:
    """Return whether the best score is of the same patient, and the area of that patient's scores, for some notes."""
    same = patients == patients[indices, None]
    same[np.arange(indices.size), indices] = False
    scores[np.arange(indices.size), indices] = -1.0
    first = same[np.arange(indices.size), scores.argmax(axis=1)]
    area = [
        _area(row[own], row[other])
        for row, own, other in zip(scores, same, patients != patients[indices, None], strict=True)
    ]
    return first.astype(np.int64), np.array(area, dtype=np.float64)


def _area(own: Doubles, other: Doubles) -> float:
    """Return P(own score above another), ties by half; 0.5 without others."""
    ranked = np.sort(other)
    below = np.searchsorted(ranked, own, side="left") + np.searchsorted(ranked, own, side="right")
    return float(below.mean() / (2 * ranked.size)) if ranked.size else 0.5


def _by_patient(patients: Ints, values: NDArray[Any]) -> Doubles:
    """Return the sums of the values and their number per patient, (n_patients, 2)."""
    _, number = np.unique(patients, return_inverse=True)
    return np.stack([np.bincount(number, values), np.bincount(number)], axis=1)
