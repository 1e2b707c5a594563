"""The main functions, for notes of any type; `release` writes the same files as the command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from warnings import warn

from clinveil.api.frames import ONE_TEXT, NoteRoles, Notes, path_of, scratch
from clinveil.core import (
    InputWarning,
    Location,
    NotesSettings,
    Say,
    Settings,
    UsageError,
    flattened,
    load_settings,
    refuse_remote,
    workplace,
)
from clinveil.corpus import NO_PATIENTS, write_corpus
from clinveil.vectors import VectorSettings

if TYPE_CHECKING:
    from clinveil.comparison import Comparison
    from clinveil.releases import Check, Outcome
    from clinveil.vectors import Vectors

S = TypeVar("S", bound=Settings)
_OF_NOTES = frozenset({"label", "keep", *NotesSettings.model_fields})


def embed(notes: Notes, *, seed: int = 1, workers: int = 1, **options: Any) -> Vectors:
    """Train word vectors on notes; reproducible by seed (CBOW and fastText only with one worker).

    Args:
        options: columns of a frame, and fields of `VectorSettings` (algorithm, dim, window, epochs,
            …).

    Raises InputError for invalid notes, UsageError for unknown options.
    """
    from clinveil.corpus import without_markup
    from clinveil.vectors import train

    columns, settings = _parted(options)
    how = load_settings(VectorSettings, settings)
    with scratch() as folder:
        corpus = without_markup(NoteRoles.of(columns).opened(notes)[0])
        return train(corpus, how, seed=seed, workers=workers, scratch=folder)


def release(
    notes: Notes,
    out: str | Path,
    *,
    kind: str | None = None,
    config: str | Path | None = None,
    vectors: str | Path | None = None,
    reuse: str | Path | None = None,
    say: Say | None = None,
    **options: Any,
) -> Outcome:
    """Create and check a release, and write it with a vault and a report to the folder `out`.

    Args:
        notes: a path, a frame, or a list of strings (each of a separate patient).
        kind: `obfuscated`, `deidentified` or `synthetic`; required, here or in `config`, without
            `reuse`.
        config: TOML file of settings, or "paper" or "strict"; options override it.
        vectors: pretrained word vectors to use instead of training on the notes.
        reuse: vault of an earlier run (`OUT/vault`), to reuse its key, vectors, channel and model.
        say: receives the lines that the command prints to stderr, for example `print`.
        options: other flags of `clinveil release --help`, with underscores: `label`, `patients`, …;
            groups of settings as dictionaries (`lm={"model": "lstm"}`); `settings` has any of them
            (`settings={"vectors": {"dim": 50}}`). `workers` is 1 here; with more, a script needs
            `if __name__ == "__main__":`.

    Returns `refused`, `verdicts`, `gates`, `findings`, and the paths `folder.release`, which may
    leave, and `folder.vault`, which never may.

    Warns with InputWarning if the release must not leave, and without a patient column.
    Raises InputError for invalid notes, UsageError if `out` exists or an option is unknown.
    """
    from clinveil.releases import ReleaseSettings, ReusedRun, no_kind
    from clinveil.releases import release as run

    _paths_only(options)
    options = {"workers": 1, **options} | ({} if kind is None else {"kind": kind})
    file = None if config is None else Path(config)
    # Reject wrong options before anything is written.
    if not _settings(ReleaseSettings, options, {}, file).kind and reuse is None:
        raise no_kind()
    reused = ReusedRun.read(Path(reuse)) if reuse is not None else None
    with _on_disk(notes, _folder(out), options) as (path, more):
        settings = _settings(ReleaseSettings, options, more, file)
        trained = Path(vectors) if vectors is not None else None
        outcome = run(path, Path(out), settings, vectors=trained, reused=reused, say=_warning(say))
    if outcome.refused:
        warn(_failed(outcome), InputWarning, stacklevel=4)
    return outcome


def _paths_only(options: Mapping[str, Any]) -> None:
    """Raise UsageError for lists of people that are no path: the vault names the file, so that the
    same run can be continued.
    """
    for name in ("patients", "staff"):
        if not isinstance(options.get(name), str | Path | None):
            kind = type(options[name]).__name__
            hint = "write it to a file first, such as patients.parquet, and pass its path"
            raise UsageError(f"{name} cannot be of type {kind}", hint=hint)


def _failed(outcome: Outcome) -> str:
    return f"no release was written. {outcome.verdicts[0].sentence} See gates and folder.vault"


def compare(
    notes: Notes,
    out: str | Path,
    *,
    label: str | None = None,
    say: Say | None = None,
    **options: Any,
) -> Comparison:
    """Compare all kinds of release on the same notes: utility on real notes, and risk by adversary.

    Args:
        notes: a path, a frame, or a list of strings (each of a separate patient).
        out: the folder of the comparison, all of it secret. The same call again skips finished
            releases.
        label: the column to classify by.
        say: receives the lines that the command prints to stderr, for example `print`.
        options: the flags of `clinveil compare --help`, with underscores: `patients`, `pairs`,
            `kind`, `setting`, …

    Returns:
        `releases`, each with `name`, `kind`, `findings`, `gates` and `seconds`, and `folder`.

    Raises InputError for invalid notes, UsageError without a label or for an unknown option.
    """
    from clinveil.comparison import CompareSettings, compare_releases

    options = {"workers": 1, **options} | ({} if label is None else {"label": label})
    _settings(CompareSettings, options, {}).refuse()
    with _on_disk(notes, _folder(out), options) as (path, more):
        return compare_releases(
            path, Path(out), _settings(CompareSettings, options, more), _warning(say)
        )


def verify(folder: str | Path, public_key: str | Path | None = None) -> list[Check]:
    """Check a release's files, hashes, signature and manifest, without secrets. Raises InputError
    if it is none.

    Args:
        public_key: the custodian's public key, a PEM file or its fingerprint ("SHA256:…").

    Returns:
        One `Check` per test: what, passed, said.
    """
    from clinveil.releases import verify as check

    return check(Path(folder), public_key)


def _parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options into column roles and all others."""
    columns = {name: value for name, value in options.items() if name in _OF_NOTES}
    return columns, {name: value for name, value in options.items() if name not in columns}


@contextmanager
def _on_disk(
    notes: Notes, out: Path, options: Mapping[str, Any]
) -> Iterator[tuple[Location, dict[str, Any]]]:
    """Provide notes as a file that can be read repeatedly; other types are written to a private
    folder next to OUT.

    Yields the path, and the settings with the column roles of that file.
    """
    if isinstance(notes, str | Path):
        yield path_of(notes, "the notes", ONE_TEXT), {}
        return
    corpus = NoteRoles.of(_parted(options)[0]).opened(notes)[0]
    columns = corpus.columns
    with workplace(out) as folder:
        write_corpus(corpus.batches(), folder / "notes.parquet", columns, ".parquet")
        roles = {"text": columns.text, "id": columns.note_id, "patient": columns.patient_id}
        yield (
            folder / "notes.parquet",
            {name: column for name, column in roles.items() if column is not None},
        )


def _settings(
    model: type[S], options: Mapping[str, Any], more: Mapping[str, Any], config: Path | None = None
) -> S:
    """Return settings from keyword arguments.

    A keyword is a setting of the top level, a column role, or a flag of the command; `settings` has
    others by name or nested. A single value is accepted for settings with several values.
    """
    words = " ".join(model.FLAGS.values()).split()
    short = {name.rpartition(".")[2]: name for name in words if name in model.declared()}
    # In Python, `model` is the setting of this name, the classifiers.
    short = {name: path for name, path in short.items() if name not in model.declared()}
    short |= {name: f"notes.{name}" for name in NotesSettings.model_fields}
    nested = dict(options)
    given_ = flattened(model, nested.pop("settings", {}))
    given_ |= flattened(model, {short.get(name, name): v for name, v in nested.items()})
    given_ |= {f"notes.{name}": value for name, value in more.items()}
    several = [name for name in given_ if model.declared()[name].takes_several]
    given_ |= {name: (given_[name],) for name in several if isinstance(given_[name], str)}
    return load_settings(model, given_, config)


def _warning(say: Say | None) -> Say:
    """Return a function that passes lines to `say` and also issues important ones as warnings."""

    def forward(line: str) -> None:
        if line.startswith(NO_PATIENTS):
            warn(NO_PATIENTS, InputWarning, stacklevel=2)
        if say:
            say(line)

    return forward


def _folder(out: Any) -> Path:
    if not isinstance(out, str | Path):
        raise UsageError(
            f"out cannot be of type {type(out).__name__}", hint="pass the path of a folder"
        )
    return refuse_remote(Path(out))
