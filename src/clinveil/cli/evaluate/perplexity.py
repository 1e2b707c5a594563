"""`clinveil evaluate perplexity`: how well a language model predicts real notes (paper C, Table 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clinveil.cli.options import JsonOut, settings_command
from clinveil.cli.progress import say_unless
from clinveil.core.settings import QUIET, SEED, NotesSettings, Settings, flag, group
from clinveil.lm.recipe import ModelSettings

if TYPE_CHECKING:
    from clinveil.lm.model import LanguageModel
    from clinveil.lm.notes import PlainNotes, Seen

app = typer.Typer(add_completion=False)
Train = Annotated[Path | None, typer.Option("--train", help="Train on these notes: real ones, or synthetic ones.")]
Model = Annotated[Path | None, typer.Option("--from", help="Or take this model: OUT.vault/model of synthesize.")]
NO_CONTROL = "none with --from: a unigram needs the training notes, which are not at hand"
NOT_CHECKED = "whether the model was trained on some of these notes; its folder says too little of them"
READ = "{name} holds <unk>, so it is in MedText's form already and was read as with --prepared"
LOOKS_PREPARED = "{name} looks as if it were in MedText's form already; if it is, say --prepared"
LOOKS_PLAIN = "{name} does not look like MedText's form; if it is not, leave --prepared out"


class PerplexitySettings(Settings):
    """Everything that `clinveil evaluate perplexity` can be told."""

    lm: ModelSettings = group(ModelSettings)
    notes: NotesSettings = group(NotesSettings)
    seed: int | None = SEED
    quiet: bool = QUIET

    workers: int = flag(1, "Threads of PyTorch; with one, the same seed gives the same bits.", ge=1, le=1024)
    prepared: bool = flag(False, "All notes are in MedText's form already; a file that holds <unk> is read so anyway.")


@settings_command(app, PerplexitySettings, name="perplexity")
def perplexity(
    settings: PerplexitySettings,
    notes: Annotated[Path, typer.Argument(help="Real notes to predict, of patients that the model did not see.")],
    train: Train = None,
    source: Model = None,
    json: JsonOut = None,
) -> None:
    """Perplexity a token, and bits a character, of notes under a model; with --train, a unigram of it beside it.

    Perplexities compare at one vocabulary only; bits a character at any: unknown words cost their spelling.
    """
    import secrets

    from clinveil.cli.findings import say_findings
    from clinveil.core.errors import UsageError
    from clinveil.lm.model import fit_of
    from clinveil.lm.notes import encode
    from clinveil.utility.perplexity import perplexity_findings

    if (train is None) == (source is None):
        raise UsageError("there is no model, or there are two", remedy="--train NOTES or --from MODEL, one of them")
    if source is None and settings.lm.neural:
        from clinveil.core.neural import need_torch

        need_torch()
    seed = secrets.randbelow(2**31) if settings.seed is None else settings.seed
    said = _Said()
    test = _read(notes, settings, said)
    model, floor = _models(settings, train, source, seed, test, said)
    control = None if floor is None else fit_of(floor, encode(test.texts, floor.vocabulary))
    with model.ready(threads=settings.workers):
        fit = fit_of(model, encode(test.texts, model.vocabulary))
    found = perplexity_findings(model, fit, test, "test", control=control, more=said.detail(source is not None))
    title = f"{model.kind} on {notes.name} (seed {seed}; lower is better)"
    say_findings("evaluate perplexity", found, seed=seed, json_out=json, title=title)


@dataclass
class _Said:
    """What has to be read beside the figures."""

    warnings: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    checked: bool = True

    def look(self, seen: Seen | None, test: PlainNotes) -> None:
        """Hold the test notes against those of the training; None where nothing is known of them."""
        self.checked = seen is not None
        self.warnings += seen.warnings(test) if seen else []

    def detail(self, given: bool) -> dict[str, str]:
        """Labels for the findings. given: the model was."""
        detail = {"control_is": NO_CONTROL} if given else {}
        detail |= {} if self.checked else {"not_checked": NOT_CHECKED}
        told = (("warning", self.warnings), ("read", self.read))
        return detail | {key: "; ".join(dict.fromkeys(lines)) for key, lines in told if lines}


def _read(path: Path, settings: PerplexitySettings, said: _Said) -> PlainNotes:
    """Notes in MedText's form, whether they were or not."""
    from clinveil.corpus.open import open_corpus
    from clinveil.lm.notes import form_of, read_notes

    corpus = open_corpus(path, settings.notes)
    form, prepared = form_of(corpus), settings.prepared
    if form.has_unk and not prepared:
        prepared = True
        said.read.append(READ.format(name=path.name))
    elif form.prepared is not None and form.prepared != prepared:
        said.warnings.append((LOOKS_PREPARED if form.prepared else LOOKS_PLAIN).format(name=path.name))
    return read_notes(corpus, prepared=prepared)


def _models(
    settings: PerplexitySettings, train: Path | None, source: Path | None, seed: int, test: PlainNotes, said: _Said
) -> tuple[LanguageModel, LanguageModel | None]:
    """The model, given or trained; and for one trained here a unigram of the same notes."""
    from clinveil.lm.checkpoint import load_model
    from clinveil.lm.models.unigram import train_unigram
    from clinveil.lm.notes import Seen, encode
    from clinveil.lm.train import make_vocabulary, train_model

    if source is not None:
        given, about = load_model(source, device=settings.lm.device)
        said.look(Seen.from_dict(about.get("notes")) or _seen_whole(about, test), test)
        return given, None
    assert train is not None
    seen = _read(train, settings, said)
    said.look(Seen.of(seen), test)
    vocabulary = make_vocabulary(seen, settings.lm)
    encoded = encode(seen.texts, vocabulary)
    say = say_unless(settings.quiet)
    model, _ = train_model(encoded, vocabulary, settings.lm, seed=seed, threads=settings.workers, say=say)
    return model, train_unigram(encoded, vocabulary)


def _seen_whole(about: Mapping[str, Any], test: PlainNotes) -> Seen | None:
    """For a model that keeps one hash of all its notes: whether the test notes are those, or those of its run."""
    from clinveil.core.errors import ClinveilError
    from clinveil.lm.notes import Seen
    from clinveil.releases.producers.synthesis.trained import Sides, split_as_before

    split = about.get("split")
    if isinstance(split, dict) and Sides(test, test).digest == split.get("notes_sha256"):
        return Seen.of(test)
    try:
        return Seen.of(split_as_before(test, split, "model").training)
    except ClinveilError:
        return None  # other notes, or some of these: it cannot tell, and the findings say so
