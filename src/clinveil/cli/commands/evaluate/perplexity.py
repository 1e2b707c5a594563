"""`clinveil evaluate perplexity`: How well a language model, or one of synthetic notes, predicts real ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from clinveil.cli.command import Run, command
from clinveil.core.errors import ClinveilError, UsageError
from clinveil.core.neural import need_torch
from clinveil.core.settings import QUIET, SEED, NotesSettings, Settings, flag, group
from clinveil.corpus.corpus import rows
from clinveil.corpus.open import open_corpus
from clinveil.lm.model import LanguageModel, fit_of, load_model
from clinveil.lm.models.unigram import train_unigram
from clinveil.lm.notes import Form, PlainNotes, Seen, encode, read_notes
from clinveil.lm.recipe import ModelSettings
from clinveil.lm.train import make_vocabulary, train_model
from clinveil.releases.synthesis_model import TrainHoldoutSplit, split_as_before
from clinveil.utility.perplexity import perplexity_findings

Train = Annotated[Path | None, typer.Option("--train", help="Train on these notes: real ones, or synthetic ones.")]
Model = Annotated[Path | None, typer.Option("--from", help="Use this model: OUT/vault/model of a synthetic release.")]
NO_CONTROL = "none with --from: a unigram needs the training notes, which are not at hand"
NOT_CHECKED = "whether the model was trained on some of these notes; its folder says too little of them"
READ = "{name} holds <unk>, so it is in MedText's form already and was read as with --prepared"
LOOKS_PREPARED = "{name} looks as if it were in MedText's form already; if it is, say --prepared"
LOOKS_PLAIN = "{name} does not look like MedText's form; if it is not, leave --prepared out"


class PerplexitySettings(Settings):
    """Settings of `clinveil evaluate perplexity`."""

    lm: ModelSettings = group(ModelSettings)
    notes: NotesSettings = group(NotesSettings)
    seed: int | None = SEED
    quiet: bool = QUIET
    workers: int = flag(1, "Threads of PyTorch; with one, the same seed gives the same bits.", ge=1, le=1024)
    prepared: bool = flag(False, "All notes are in MedText's form already; a file that holds <unk> is read so anyway.")


@command("evaluate perplexity", PerplexitySettings, flags="seed", findings=True)
def perplexity(
    run: Run[PerplexitySettings],
    notes: Annotated[Path, typer.Argument(help="Real notes to predict, of patients that the model did not see.")],
    train: Train = None,
    source: Model = None,
) -> None:
    """Perplexity a token, and bits a character, of notes under a model; with --train, a unigram of it beside it.

    Perplexities compare at one vocabulary only; bits a character at any: unknown words cost their spelling.
    """
    if (train is None) == (source is None):
        raise UsageError("there is no model, or there are two", hint="--train NOTES or --from MODEL, one of them")
    if source is None and run.settings.lm.neural:
        need_torch()
    remarks = _Remarks()
    test = _read(notes, run.settings, remarks)
    model, floor = _models(run, train, source, test, remarks)
    control = None if floor is None else fit_of(floor, encode(test.texts, floor.vocabulary))
    with model.ready(threads=run.settings.workers):
        fit = fit_of(model, encode(test.texts, model.vocabulary))
    found = perplexity_findings(model, fit, test, "test", control=control, more=remarks.detail(source is not None))
    run.show(found, f"{model.kind} on {notes.name} (seed {run.seed}; lower is better)")


@dataclass
class _Remarks:
    """What has to be read beside the figures."""

    warnings: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    checked: bool = True

    def compare(self, seen: Seen | None, test: PlainNotes) -> None:
        """Hold the test notes against those of the training; None where nothing is known of them."""
        self.checked = seen is not None
        self.warnings += seen.warnings(test) if seen else []

    def detail(self, given: bool) -> dict[str, str]:
        """Labels for the findings. given: the model was."""
        detail = {"control_is": NO_CONTROL} if given else {}
        detail |= {} if self.checked else {"not_checked": NOT_CHECKED}
        told = (("warning", self.warnings), ("read", self.read))
        return detail | {key: "; ".join(dict.fromkeys(lines)) for key, lines in told if lines}


def _read(path: Path, how: PerplexitySettings, remarks: _Remarks) -> PlainNotes:
    """Notes in MedText's form, whether they were or not."""
    corpus = open_corpus(path, how.notes)
    form, prepared = Form.of(note.text for note in rows(corpus)), how.prepared
    if form.n_unk and not prepared:
        prepared = True
        remarks.read.append(READ.format(name=path.name))
    elif form.prepared is not None and form.prepared != prepared:
        remarks.warnings.append((LOOKS_PREPARED if form.prepared else LOOKS_PLAIN).format(name=path.name))
    return read_notes(corpus, prepared=prepared)


def _models(
    run: Run[PerplexitySettings], train: Path | None, source: Path | None, test: PlainNotes, remarks: _Remarks
) -> tuple[LanguageModel, LanguageModel | None]:
    """The model, given or trained; and for one trained here a unigram of the same notes."""
    how = run.settings
    if source is not None:
        given, about = load_model(source, device=how.lm.device)
        remarks.compare(Seen.from_dict(about.get("notes")) or _seen_whole(about, test), test)
        return given, None
    assert train is not None
    seen = _read(train, how, remarks)
    remarks.compare(Seen.of(seen), test)
    vocabulary = make_vocabulary(seen, how.lm)
    encoded = encode(seen.texts, vocabulary)
    model, _ = train_model(encoded, vocabulary, how.lm, seed=run.seed, threads=how.workers, say=run.say)
    return model, train_unigram(encoded, vocabulary)


def _seen_whole(about: Mapping[str, Any], test: PlainNotes) -> Seen | None:
    """For a model that keeps one hash of all its notes: whether the test notes are those, or those of its run."""
    split = about.get("split")
    if isinstance(split, dict) and TrainHoldoutSplit(test, test).digest == split.get("notes_sha256"):
        return Seen.of(test)
    try:
        return Seen.of(split_as_before(test, split, "model").training)
    except ClinveilError:
        return None  # other notes, or some of these: it cannot tell, and the findings say so
