"""Commands of attacks, made from their inputs: each input is a path on the command line."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import typer
from pydantic import create_model

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.cli.command import Command, Run
from clinveil.cli.groups import Parsed
from clinveil.cli.progress import say
from clinveil.core.registry import Registry
from clinveil.core.settings import QUIET, SEED, WORKERS, NotesSettings, Settings, group


class Input(NamedTuple):
    """An input of an attack on the command line.

    Attributes:
        name: of the parameter.
        kind: annotation of the parameter.
        read: returns the value for the attack's context from the path.
        notes: whether the path is of notes, so that the command has the settings that say how notes are read.
    """

    name: str
    kind: Any
    read: Callable[[Any, NotesSettings], Any]
    notes: bool = False


def _corpus(path: Path, how: NotesSettings) -> Any:
    from clinveil.corpus.open import open_corpus

    return open_corpus(path, how)


def _counts(path: Path, how: NotesSettings) -> Any:
    from clinveil.vectors.count import count_words

    with tempfile.TemporaryDirectory(prefix="clinveil-counts") as scratch:
        return count_words(_corpus(path, how), Path(scratch))


def _vectors(paths: Iterable[Path], _: NotesSettings) -> Any:
    from clinveil.vectors.files import load_vectors

    return [load_vectors(path) for path in paths]


def _names(path: Path, _: NotesSettings) -> Any:
    from clinveil.attacks.vectors.names import read_full_names

    return read_full_names(path)


def _known(path: Path, _: NotesSettings) -> Any:
    from clinveil.corpus.people import read_patients

    return read_patients(path)


def _codes(path: Path, _: NotesSettings) -> Any:
    from clinveil.corpus.people import read_codes

    return read_codes(path)


def _model(path: Path, _: NotesSettings) -> Any:
    from clinveil.lm.model import load_model

    return load_model(path)[0]


def _channel(path: Path, _: NotesSettings) -> Any:
    from clinveil.channel.files import load_channel

    return load_channel(path)


def _sources(path: Path, _: NotesSettings) -> Any:
    from clinveil.releases.crosswalk import source_notes

    return source_notes(path)


def _path(flag: str, help: str) -> Any:
    return Annotated[Path, typer.Option(flag, help=help)]


_VECTORS = "Word vectors: folders of clinveil embed, .vec, .txt or .bin files."
_HELD_OUT = "Control: notes of other patients, not used for training."
_RELEASED = "Protected notes: a file or a folder."
INPUTS: Mapping[str, Input] = {
    "vectors": Input("vectors", Annotated[list[Path], typer.Argument(help=_VECTORS)], _vectors),
    "released": Input("released", Annotated[Path, typer.Argument(help=_RELEASED)], _corpus, True),
    "original": Input("original", _path("--original", "Original notes."), _corpus, True),
    "entered": Input("entered", _path("--entered", "The notes as they entered the channel."), _corpus, True),
    "training": Input("training", _path("--training", "Notes that the model was trained on."), _corpus, True),
    "held_out": Input("held_out", _path("--held-out", _HELD_OUT), _corpus, True),
    "reference": Input("reference", _path("--reference", "Notes of third patients."), _corpus, True),
    "counts": Input("notes", _path("--notes", "Source notes, to count words."), _counts, True),
    "names": Input("names", _path("--names", "True names: a patients file, or one full name per line."), _names),
    "known": Input(
        "patients", _path("--patients", "Patients whose names the vectors contain (missed.parquet)."), _known
    ),
    "codes": Input("codes", _path("--codes", "Table of codes and descriptions (codes.csv)."), _codes),
    "model": Input("source", _path("--from", "Language model (vault/model of a synthetic release)."), _model),
    "earlier": Input("earlier", _path("--earlier", "Channel of an earlier release of the same notes."), _channel),
    "channel": Input("channel", _path("--channel", "Channel of a release (vault/channel)."), _channel),
    "notes": Input("vault", _path("--vault", "Vault of the release, for the source of each note."), _sources),
}
"""Field of an attack's context -> input of the command line."""


def attack_command(
    name: str, attack: type[Attack], title: str, optional: Iterable[str] = (), first: str = ""
) -> Command[Settings]:
    """Return the command of an attack.

    Args:
        name: of the attack.
        attack: its class.
        title: the line above the findings, with {seed} and names of parameters.
        optional: fields of the context that may be given in addition to the required ones.
        first: the field that is given by an argument instead of an option.
    """
    given = {need: INPUTS[need] for need in INPUTS if need in {*attack.needs, *optional}}
    given |= {first: _as_argument(given[first])} if first else {}
    fields: dict[str, Any] = {"attack": (attack, group(attack))}
    if any(one.notes for one in given.values()):
        fields["notes"] = (NotesSettings, group(NotesSettings))
    fields |= {"workers": (int, WORKERS), "seed": (int | None, SEED), "quiet": (bool, QUIET)}
    settings: type[Settings] = create_model(f"{attack.__name__}Command", __base__=Settings, **fields)

    def run_it(run: Run[Any], **paths: Any) -> None:
        how = run.settings
        reading = getattr(how, "notes", NotesSettings())
        held = {need: one.read(paths[one.name], reading) for need, one in given.items() if paths[one.name]}
        _warn_without_counts(held, optional)
        found = how.attack(Context(**held, workers=how.workers, say=run.say), run.rng())
        shown = {one: ", ".join(p.name for p in _listed(path)) for one, path in paths.items()}
        run.show(found, title.format(seed=run.seed, **shown))

    run_it.__doc__ = attack.help()
    run_it.__signature__ = _signature(given, optional)  # type: ignore[attr-defined]
    return Command(f"attack {name}", run_it, settings, flags="seed", findings=True)


def _as_argument(given: Input) -> Input:
    kind, option = get_args(given.kind)
    return given._replace(kind=Annotated[kind, typer.Argument(help=option.help)])


def _signature(given: Mapping[str, Input], optional: Iterable[str]) -> Signature:
    keyword = Parameter.KEYWORD_ONLY
    needed = [Parameter(one.name, keyword, annotation=one.kind) for need, one in given.items() if need not in optional]
    others = [one for need, one in given.items() if need in optional]
    kinds = {one.name: Annotated[Path | None, get_args(one.kind)[1]] for one in others}
    more = [Parameter(name, keyword, default=None, annotation=kind) for name, kind in kinds.items()]
    return Signature([Parameter("run", Parameter.POSITIONAL_OR_KEYWORD), *needed, *more])


def _listed(path: Any) -> list[Path]:
    return path if isinstance(path, list) else [path] if path else []


def _warn_without_counts(held: Mapping[str, Any], optional: Iterable[str]) -> None:
    if "counts" in optional and "counts" not in held and any(one.counts is None for one in held["vectors"]):
        say("clinveil: vectors without word counts: name frequencies are unknown (pass --notes)")


# Attacks that a release runs, or that are part of another command.
OF_RELEASES = frozenset({"inversion", "repetition", "name-outputs", "identifiers", "overlap"})
OF_RELEASES |= {"uniqueness", "chain", "adversary-suite"}


class AttackCommands(Registry[Parsed]):
    """The commands of the group, and a generated command for each other attack."""

    def names(self) -> tuple[str, ...]:
        """Return all names."""
        return tuple(dict.fromkeys((*super().names(), *sorted({*attacks.names()} - OF_RELEASES))))

    def get(self, name: str) -> Parsed:
        """Return a command. Raises UsageError with all names for an unknown one."""
        if name not in super().names() and name in attacks.names():
            return attack_command(name, attacks.get(name), f"{name} (seed {{seed}})")
        return super().get(name)
