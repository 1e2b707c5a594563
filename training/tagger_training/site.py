"""Train a tagger on a site's own notes and gold spans, together with generated texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

from clinveil.core import (
    FORCE,
    LABELS,
    QUIET,
    InputError,
    Maker,
    NotesSettings,
    Settings,
    UsageError,
    group,
    refuse_places,
    setting,
)
from clinveil.corpus import GoldSpans, Note, open_corpus, read_spans, rows
from clinveil.phi import Tagger, TaggerModel, own_tagger
from tagger_training.invent import Labelled, all_texts, invented, refilled
from tagger_training.people import People
from tagger_training.train import judged, save_tagger, threshold_within, train_tagger, written_small

MAKER = Maker("phi train")
MIN_PATIENTS = 10
HELD_OUT_EVERY = 5
"""Every fifth patient is held out, to choose the threshold and to estimate recall."""
_COPIES = 2


class TrainSettings(Settings):
    """Settings of `train_on_notes`."""

    notes: NotesSettings = group(NotesSettings)
    kind: tuple[str, ...] = setting(("NAME",), "PHI label to learn (default: NAME); repeatable.")
    most_false: float = setting(
        0.001, "Maximum share of unmarked words tagged as identifiers.", gt=0, le=0.1
    )
    invented: int = setting(
        3000, "Number of generated texts with names of many cultures (NAME only).", ge=0, le=100_000
    )
    iterations: int = setting(80, "Maximum number of training iterations.", ge=1, le=1000)
    seed: int | None = setting(
        None, "Public seed of the training (default: random, printed).", ge=0
    )
    quiet: bool = QUIET
    force: bool = FORCE


class _Parts(NamedTuple):
    training: list[Labelled]
    held_out: list[Labelled]
    patients: int


def train_on_notes(
    notes: Path,
    gold: Path,
    out: Path,
    settings: TrainSettings,
    *,
    seed: int,
    say: Callable[[str], None],
) -> TaggerModel:
    """Train on notes and their gold spans and write the model, which is as confidential as the
    notes.

    All identifiers in the notes must be annotated. The same files, settings and seed give the same
    bytes.

    Raises:
        UsageError: conflicting paths, or an unknown label.
        InputError: spans without a note or outside it, too few patients, or no span with a
            requested label.
    """
    if unknown := sorted(set(settings.kind) - LABELS.keys()):
        raise UsageError(
            f"unknown PHI label {unknown[0]}", where="kind", hint="use one of " + ", ".join(LABELS)
        )
    refuse_places(out, MAKER, force=settings.force, read={"NOTES": notes, "--gold": gold})
    rng = Random(seed)
    parts = _parts(list(rows(open_corpus(notes, settings.notes))), read_spans(gold), rng)
    say(
        f"{len(parts.training)} notes for training, {len(parts.held_out)} held out; training takes"
        " some minutes"
    )
    model = _fitted(parts, settings, seed, rng)
    save_tagger(model, out, force=settings.force)
    return model


def _parts(notes: Sequence[Note], gold: GoldSpans, rng: Random) -> _Parts:
    """Split the notes into training texts and those of every fifth patient, with their spans."""
    gold.refuse_unknown(note.note_id for note in notes)
    patients = sorted({note.patient_id for note in notes})
    if len(patients) < MIN_PATIENTS:
        hint = f"provide at least {MIN_PATIENTS} patients, better hundreds"
        raise InputError(f"too few patients to train a tagger: {len(patients)}", hint=hint)
    rng.shuffle(patients)
    held_out = frozenset(patients[::HELD_OUT_EVERY])
    texts = [
        (note.patient_id in held_out, Labelled(note.text, tuple(gold.of(note.note_id, note.text))))
        for note in notes
    ]
    training = [text for apart, text in texts if not apart]
    return _Parts(training, [text for apart, text in texts if apart], len(patients))


def _fitted(parts: _Parts, settings: TrainSettings, seed: int, rng: Random) -> TaggerModel:
    people = People()
    bundled = own_tagger()
    generated = settings.invented if set(settings.kind) == {"NAME"} else 0
    texts = all_texts(
        [
            parts.training,
            _copies(parts.training, settings.kind, people, rng),
            invented(generated, people, rng),
        ],
        rng,
    )
    card = {
        "notes": len(parts.training),
        "patients": parts.patients,
        "invented": generated,
        "seed": seed,
    }
    words = written_small(text.text for text in parts.training)
    known = frozenset(bundled.vocabulary.tolist())
    model = train_tagger(texts, settings.kind, 0.5, card, words, known, settings.iterations)
    threshold = threshold_within(Tagger(model), parts.held_out, settings.most_false)
    model = replace(model, threshold=threshold)
    return replace(
        model,
        card={**model.card, "most_false": settings.most_false, **judged(model, parts.held_out)},
    )


def _copies(
    texts: Sequence[Labelled], kinds: Sequence[str], people: People, rng: Random
) -> Iterator[Labelled]:
    """Yield each text with other names, to prevent memorisation; only if NAME is the only label."""
    if set(kinds) == {"NAME"}:
        yield from (refilled(text, people, rng) for text in texts for _ in range(_COPIES))
