"""What is measured on every release: the attacks of this version, and utility on each label."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.attack import Context
from clinveil.attacks.channel._patient_counts import inversion_counts
from clinveil.attacks.channel.inversion import inversion, inversion_names
from clinveil.attacks.channel.name_outputs import EVERY, name_outputs
from clinveil.attacks.channel.repetition import repeated, repeats_in_notes
from clinveil.attacks.text.identifiers import Identifiers
from clinveil.attacks.text.overlap import overlap
from clinveil.attacks.text.uniqueness import kept_columns, layout
from clinveil.channel.channel import Channel
from clinveil.core.finding import Finding
from clinveil.corpus.corpus import Corpus
from clinveil.corpus.people import Patient
from clinveil.releases.settings import ReleaseSettings
from clinveil.utility.classification import classification
from clinveil.vectors.count import WordCounts

# Simulated words for each number of repeats: an interval of about one point either way.
DRAWS = 5000
UTILITY_SEED = 20260101  # of the split and of what is trained; it says nothing of the release

NOT_TRIED = (
    "An attacker who reads context; the inversion figures are lower bounds. Of 577 MTSamples notes, obfuscated at the "
    "defaults, somebody with the channel reads .47 of the words from single draws and .69 with the word pairs of other "
    "notes (benchmarks/context.md). One measurement outside this repository, with trigram counts of 1,277 other notes, "
    "read .77 where .48 is printed, and .35 of the words seen fewer than 20 times where .02 is.",
    "An attacker without the vectors, who trains their own on other notes or on the release.",
    "Linkage by somebody who holds a piece of the source: they test which released note could have come from it.",
    "Attribute inference: a classifier reads diagnoses off released notes, which is also their use.",
    "Intersection with another release of the same notes.",
    "Linkage by the order of the rows, where --order source keeps it.",
)


@dataclass(frozen=True)
class Material:
    """What the measures look at: both sides of the release, what made it, and how to get from one to the other."""

    original: Corpus
    released: Corpus
    notes: dict[str, str]  # released note id -> source note id
    patients: dict[str, str]
    channel: Channel
    counts: WordCounts
    known: dict[str, Patient]
    entered: Corpus  # the notes as they entered the channel


def prior(channel: Channel, counts: WordCounts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The owner's word frequencies in the channel's order, and those of the words it does not know."""
    known = np.zeros(len(channel.words), dtype=np.int64)
    for word, count in zip(counts.words, counts.counts.tolist(), strict=True):
        row = channel.ids.get(word)
        if row is not None:
            known[row] = count
    return known, np.array([*unknown_words(channel, counts).values()], dtype=np.int64)


def unknown_words(channel: Channel, counts: WordCounts) -> dict[str, int]:
    """Occurrences of the owner's words that the channel does not know."""
    occurrences = zip(counts.words, counts.counts.tolist(), strict=True)
    return {word: count for word, count in occurrences if word not in channel.ids}


def measure(material: Material, settings: ReleaseSettings, rng: Generator) -> list[Finding]:
    """All findings of a release, attacks first; the order is that of the report."""
    known, unknown = prior(material.channel, material.counts)
    steps: list[Callable[[], list[Finding]]] = [
        lambda: inversion(material.channel, known, unknown),
        lambda: _names_back(material, known),
        lambda: _counted(material, known, settings, rng),
        lambda: repeated(material.channel, known, unknown, memo=settings.channel.memo, rng=rng, draws=_draws(settings)),
        lambda: repeats_in_notes(material.original, rng),
        lambda: _names(material, rng),
        lambda: _what_names_become(material, known),
        lambda: overlap(material.released, material.original, rng, crosswalk=material.notes),
        lambda: layout(material.released),
        lambda: kept_columns(material.released, material.released.columns.keep),
        *[lambda label=label: _utility(material, label, settings.model) for label in settings.label],
    ]
    return list(chain.from_iterable(step() for step in steps))


def _names_back(material: Material, counts: NDArray[np.int64]) -> list[Finding]:
    if not material.known:
        return []
    names = [" ".join(patient.name) for patient in material.known.values()]
    return inversion_names(material.channel, names, counts, unknown_words(material.channel, material.counts))


def _counted(material: Material, counts: NDArray[np.int64], settings: ReleaseSettings, rng: Generator) -> list[Finding]:
    if settings.channel.memo != "patient":
        return []
    unknown = unknown_words(material.channel, material.counts)
    return inversion_counts(material.channel, counts, material.entered, unknown, rng=rng)


def _draws(settings: ReleaseSettings) -> int:
    # The candidates of an output grow with N, and so does the time to weigh them.
    return max(500, DRAWS * 14 // max(14, settings.channel.n.high))


def _names(material: Material, rng: Generator) -> list[Finding]:
    if not material.known:
        return []
    sides = Context(released=material.released, original=material.original, patients=material.patients)
    return Identifiers()(replace(sides, known=material.known), rng)


def _what_names_become(material: Material, counts: NDArray[np.int64]) -> list[Finding]:
    """The figures over all names that the feed knows; by frequency they are in `attack/name_outputs.py`."""
    if not material.known:
        return []
    names = [" ".join(patient.name) for patient in material.known.values()]
    found = name_outputs(material.channel, names, counts)
    return [finding for finding in found if finding.detail.get("label", EVERY) == EVERY]


def _utility(material: Material, label: str, models: tuple[str, ...]) -> list[Finding]:
    """Utility on one label. The seed is public and the same for every key, so that two releases compare."""
    rng = np.random.default_rng(UTILITY_SEED)
    original, released = material.original.batches(), material.released.batches()
    return classification(original, released, label, rng, crosswalk=material.notes, models=models)


def without_kept(material: Material, base: Channel) -> list[Finding]:
    """The inversion figures of the same channel without the user's kept words: what keeping them costs."""
    known, unknown = prior(base, material.counts)
    return [_renamed(f, "_none_kept") for f in inversion(base, known, unknown)]


def _renamed(finding: Finding, ending: str) -> Finding:
    return replace(finding, measure=finding.measure + ending)


def id_maps(crosswalk: Iterator[pa.RecordBatch]) -> tuple[dict[str, str], dict[str, str]]:
    """Released note id -> source note id, and the same for patients."""
    notes: dict[str, str] = {}
    patients: dict[str, str] = {}
    for batch in crosswalk:
        source_note, source_patient, note, patient = (column.to_pylist() for column in batch.columns)
        notes.update(zip(note, source_note, strict=True))
        patients.update(zip(patient, source_patient, strict=True))
    return notes, patients
