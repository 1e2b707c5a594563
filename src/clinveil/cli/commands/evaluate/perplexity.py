"""`clinveil evaluate perplexity`: Measure how well a language model predicts real notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import MeasureSettings
from clinveil.core.errors import ClinveilError, UsageError
from clinveil.core.neural import need_torch
from clinveil.core.settings import flag, group
from clinveil.corpus.corpus import rows
from clinveil.corpus.open import open_corpus
from clinveil.lm.files import load_model
from clinveil.lm.model import LanguageModel, fit_of
from clinveil.lm.models.unigram import train_unigram
from clinveil.lm.notes import Form, PlainNotes, Seen, encode, read_notes
from clinveil.lm.recipe import ModelSettings
from clinveil.lm.train import make_vocabulary, train_model
from clinveil.releases.synthesis_model import TrainHoldoutSplit, split_as_before
from clinveil.utility.perplexity import perplexity_findings

Train = Annotated[Path | None, typer.Option("--train", help="Train on these notes, real or synthetic.")]
Model = Annotated[Path | None, typer.Option("--from", help="Use this model (vault/model of a synthetic release).")]
NO_CONTROL = "none with --from: a unigram model needs the training notes"
NOT_CHECKED = "whether the model was trained on some of these notes; its folder has no record of them"
READ = "{name} contains <unk>, so it was read as MedText, as with --set prepared=true"
LOOKS_PREPARED = "{name} looks like MedText; if it is, pass --set prepared=true"
LOOKS_PLAIN = "{name} does not look like MedText; if it is not, leave --set prepared out"


class PerplexitySettings(MeasureSettings):
    """Settings of `clinveil evaluate perplexity`."""

    lm: ModelSettings = group(ModelSettings)
    workers: int = flag(1, "Threads of PyTorch; one makes results repeatable.", ge=1, le=1024)
    prepared: bool = flag(False, "All notes are in MedText form already; a file with <unk> is always read so.")


@command("evaluate perplexity", PerplexitySettings, flags="seed", findings=True)
def perplexity(
    run: Run[PerplexitySettings],
    notes: Annotated[Path, typer.Argument(help="Real notes of patients that are not in the training notes.")],
    train: Train = None,
    source: Model = None,
) -> None:
    """Compute perplexity per token and bits per character of notes; with --train, also of a unigram model.

    Compare perplexities for one vocabulary only, bits per character for any: unknown words are spelled out.
    """
    if (train is None) == (source is None):
        raise UsageError("no model, or two", hint="pass --train NOTES or --from MODEL")
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
    """Remarks on the figures."""

    warnings: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    checked: bool = True

    def compare(self, seen: Seen | None, test: PlainNotes) -> None:
        """Compare the test notes with those of the training, if these are known."""
        self.checked = seen is not None
        self.warnings += seen.warnings(test) if seen else []

    def detail(self, given: bool) -> dict[str, str]:
        """Return labels for the findings; `given`: the model was not trained here."""
        detail = {"control_is": NO_CONTROL} if given else {}
        detail |= {} if self.checked else {"not_checked": NOT_CHECKED}
        remarks = (("warning", self.warnings), ("read", self.read))
        return detail | {key: "; ".join(dict.fromkeys(lines)) for key, lines in remarks if lines}


def _read(path: Path, how: PerplexitySettings, remarks: _Remarks) -> PlainNotes:
    """Return notes in MedText form."""
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
    """Return the model, and a unigram model of the same notes if it was trained here."""
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
    """Return the training notes of a model that recorded one hash of them, if the test notes match."""
    split = about.get("split")
    if isinstance(split, dict) and TrainHoldoutSplit(test, test).digest == split.get("notes_sha256"):
        return Seen.of(test)
    try:
        return Seen.of(split_as_before(test, split, "model").training)
    except ClinveilError:
        return None  # unknown notes; the findings report it
