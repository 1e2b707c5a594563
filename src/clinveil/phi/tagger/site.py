"""A site's own tagger: trained on its notes and gold spans, beside texts that are invented here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import Maker, refuse_places
from clinveil.core.settings import FORCE, QUIET, NotesSettings, Settings, flag, group
from clinveil.core.spans import LABELS
from clinveil.corpus.corpus import Note, rows
from clinveil.corpus.gold import GoldSpans, read_spans
from clinveil.corpus.open import open_corpus
from clinveil.phi.tagger.invent import Labelled, all_texts, invented, refilled
from clinveil.phi.tagger.model import TaggerModel, own_tagger, save_tagger
from clinveil.phi.tagger.people import People
from clinveil.phi.tagger.train import judged, threshold_within, train_tagger, written_small

MAKER = Maker("phi train")
LEAST_PATIENTS = 10
APART = 5
"""Every fifth patient is kept apart: the threshold is chosen on them, and they say what it finds."""
_COPIES = 2


class TrainSettings(Settings):
    """Settings of `clinveil phi train`."""

    notes: NotesSettings = group(NotesSettings)
    kind: tuple[str, ...] = flag(("NAME",), "PHI label to learn (default: NAME); repeatable.")
    most_false: float = flag(0.001, "Largest share of unmarked words that may be taken.", gt=0, le=0.1)
    invented: int = flag(3000, "Invented texts with names of many cultures to learn NAME from too.", ge=0, le=100_000)
    iterations: int = flag(80, "Steps of the fit at most.", ge=1, le=1000)
    seed: int | None = flag(None, "Public seed of the training (default: one is drawn and printed).", ge=0)
    quiet: bool = QUIET
    force: bool = FORCE


class _Parts(NamedTuple):
    learnt: list[Labelled]
    apart: list[Labelled]
    patients: int


def train_on_notes(
    notes: Path, gold: Path, out: Path, how: TrainSettings, *, seed: int, say: Callable[[str], None]
) -> TaggerModel:
    """Train on notes and their gold spans, and write the model; it is as secret as the notes.

    Every note of NOTES counts as wholly marked. The same files, settings and seed give the same bytes.

    Raises:
        UsageError: places that do not fit, or an unknown label.
        InputError: spans of notes that are not there or outside them, too few patients, or none with such a span.
    """
    if unknown := sorted(set(how.kind) - LABELS.keys()):
        raise UsageError(f"unknown PHI label {unknown[0]}", where="--kind", hint="one of " + ", ".join(LABELS))
    refuse_places(out, MAKER, force=how.force, read={"NOTES": notes, "--gold": gold})
    rng = Random(seed)
    parts = _parts(list(rows(open_corpus(notes, how.notes))), read_spans(gold), rng)
    say(f"{len(parts.learnt)} notes to learn from, {len(parts.apart)} kept apart; the fit takes some minutes")
    model = _fitted(parts, how, seed, rng)
    save_tagger(model, out, force=how.force)
    return model


def _parts(notes: Sequence[Note], gold: GoldSpans, rng: Random) -> _Parts:
    """The notes as texts with their spans, those of every fifth patient apart."""
    gold.refuse_unknown(note.note_id for note in notes)
    patients = sorted({note.patient_id for note in notes})
    if len(patients) < LEAST_PATIENTS:
        hint = f"at least {LEAST_PATIENTS} are needed, hundreds are better"
        raise InputError(f"notes of {len(patients)} patients are too few to learn from", hint=hint)
    rng.shuffle(patients)
    apart = frozenset(patients[::APART])
    texts = [(note.patient_id in apart, Labelled(note.text, tuple(gold.of(note.note_id, note.text)))) for note in notes]
    return _Parts([text for kept, text in texts if not kept], [text for kept, text in texts if kept], len(patients))


def _fitted(parts: _Parts, how: TrainSettings, seed: int, rng: Random) -> TaggerModel:
    people, own = People(), own_tagger()
    made = how.invented if set(how.kind) == {"NAME"} else 0
    texts = all_texts([parts.learnt, _copies(parts.learnt, how.kind, people, rng), invented(made, people, rng)], rng)
    card = {"notes": len(parts.learnt), "patients": parts.patients, "invented": made, "seed": seed}
    words, known = written_small(text.text for text in parts.learnt), frozenset(own.vocabulary.tolist())
    model = train_tagger(texts, how.kind, 0.5, card, words, known, how.iterations)
    model = replace(model, threshold=threshold_within(model, parts.apart, how.most_false))
    return replace(model, card={**model.card, "most_false": how.most_false, **judged(model, parts.apart)})


def _copies(texts: Sequence[Labelled], kinds: Sequence[str], people: People, rng: Random) -> Iterator[Labelled]:
    """Each text with other names in it, where names are all that is learnt: no name is learnt by heart."""
    if set(kinds) == {"NAME"}:
        yield from (refilled(text, people, rng) for text in texts for _ in range(_COPIES))
