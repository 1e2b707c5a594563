"""The main verbs, on notes of any type; `release` writes what the command of its name does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_origin
from warnings import warn

from clinveil.api.frames import ONE_TEXT, Notes, given, in_python, path_of, scratch
from clinveil.api.transformers import Deidentifier, Obfuscator
from clinveil.core.atomic import workplace
from clinveil.core.errors import InputWarning, UsageError
from clinveil.core.load_settings import load_settings
from clinveil.core.settings import NotesSettings, Settings
from clinveil.core.types import Say
from clinveil.corpus.corpus import NO_PATIENTS
from clinveil.corpus.write import write_corpus
from clinveil.vectors.settings import VectorSettings

if TYPE_CHECKING:
    from clinveil.core.keys import Key
    from clinveil.corpus.people import Patient
    from clinveil.releases.finish import Outcome
    from clinveil.releases.manifest import Check
    from clinveil.releases.parent import ParentRelease
    from clinveil.study.compare.run import Comparison
    from clinveil.vectors.table import Vectors

S = TypeVar("S", bound=Settings)
_OF_NOTES = frozenset({"label", "keep", *NotesSettings.model_fields})


@in_python
def deidentify(
    notes: Notes,
    *,
    mode: str = "replace",
    patients: Mapping[str, Patient] | str | Path | None = None,
    key: Key | None = None,
    **options: Any,
) -> Any:
    """Find the identifiers in notes and treat them as a policy says; the same kind of notes comes back.

    Args:
        mode, patients, key: as in `Deidentifier`.
        options: columns of a frame (`text`, `id`, `patient`, `keep`, …) and settings of `Deidentifier` (`phi_profile`,
            `find`, `propagate`, `tagger`, …).

    Raises InputError for notes that do not fit, UsageError for an unknown mode or option.

    >>> import clinveil
    >>> clinveil.deidentify(["Phone 617-555-0123."], mode="tag")
    ['Phone [PHONE].']
    """
    columns, settings = _parted(options)
    made = Deidentifier(mode, patients=patients, key=key, columns=columns, settings=settings)  # type: ignore[arg-type]
    return made.fit().transform(notes)


@in_python
def obfuscate(
    notes: Notes,
    *,
    n: str | int = "3-14",
    scope: str = "patient",
    vectors: Vectors | str | Path | None = None,
    key: Key | None = None,
    seed: int = 1,
    workers: int = 1,
    **options: Any,
) -> Any:
    """Replace every word of notes by a random near neighbour (paper A); the same kind of notes comes back.

    Args:
        n, memo, vectors, key, seed, workers: as in `Obfuscator`, whose channel `fit` keeps; this forgets it.
        options: columns of a frame (`text`, `id`, `patient`, `keep`, …) and settings of vectors and channel.

    Raises InputError for notes that do not fit, UsageError for unknown options.
    """
    columns, settings = _parted(options)
    how = {"vectors": vectors, "key": key, "seed": seed, "workers": workers, "columns": columns, "settings": settings}
    made = Obfuscator(n, scope=scope, **how)  # type: ignore[arg-type]
    return made.fit(notes).transform(notes)


@in_python
def embed(notes: Notes, *, seed: int = 1, workers: int = 1, **options: Any) -> Vectors:
    """Train word vectors on notes; a seed gives the same bits (of CBOW and fastText with one worker).

    Args:
        options: columns of a frame, and fields of `VectorSettings` (algorithm, dim, window, epochs, …).

    Raises InputError for notes that do not fit, UsageError for unknown options.
    """
    from clinveil.vectors.train import train

    columns, settings = _parted(options)
    how = load_settings(VectorSettings, settings)
    with scratch() as folder:
        return train(given(notes, **columns).corpus, how, seed=seed, workers=workers, scratch=folder)


@in_python
def release(
    notes: Notes,
    out: str | Path,
    *,
    kind: str | None = None,
    vectors: str | Path | None = None,
    vault: str | Path | None = None,
    before: Sequence[str | Path] = (),
    say: Say | None = None,
    **options: Any,
) -> Outcome:
    """Make a release of notes, check it, and write it with a vault and a report into the folder `out`.

    Args:
        notes: a path, a frame, or a list of strings (each of a patient of its own).
        out: the folder; `out/release` may leave, `out/vault` never.
        kind: `obfuscated` (the default), `coded`, `deidentified` or `synthetic`; `--as` of the command.
        vectors: word vectors of elsewhere, to take instead of training some on the notes.
        vault: of an earlier release (`OUT/vault`), to which these notes are added: its key, channel and settings.
        before: with `vault`, files of that release's notes, so that both are looked at together.
        say: takes the lines that the command prints on stderr, for example `print`.
        options: the flags of `clinveil release --help` that have a value, with underscores: `patients`, `label`, `n`,
            `epochs`, `scope`, …; tables of the TOML file as dictionaries (`lm={"model": "gpt"}`). `workers` is 1 here;
            with more, a script needs `if __name__ == "__main__":`.

    Returns:
        `refused` and `gates`, `findings`, and where things are: `folder.release`, `folder.vault`.

    Warns with InputWarning where a gate failed, and where no column tells the patients apart.

    Raises InputError for notes that do not fit, UsageError where OUT is taken or an option is unknown.
    """
    from clinveil.releases.pipeline import release as run
    from clinveil.releases.settings import ReleaseSettings

    options = {"workers": 1, **options} | ({} if kind is None else {"kind": kind})
    _told(ReleaseSettings, options, {})  # a wrong one is told before anything is written
    base = _added_to(vault, before, vectors)
    columns = {"keep": base.settings.keep, "label": base.settings.label} if base else {}
    with _on_disk(notes, _place(out), {**columns, **options}) as (path, more):
        settings, given_ = _told(ReleaseSettings, options, more), Path(vectors) if vectors is not None else None
        with_ = {"base": base, "before": tuple(map(Path, before))}
        outcome = run(path, Path(out), settings, vectors=given_, say=_warning(say), **with_)  # type: ignore[arg-type]
    if outcome.refused:
        failed = ", ".join(gate.name for gate in outcome.gates if not gate.passed)
        warn(f"nothing may leave: a gate failed ({failed}); see gates and folder.vault", InputWarning, stacklevel=3)
    return outcome


def _added_to(
    vault: str | Path | None, before: Sequence[str | Path], vectors: str | Path | None
) -> ParentRelease | None:
    """The release that is added to; raises UsageError where arguments do not belong together."""
    from clinveil.releases.parent import ParentRelease

    if isinstance(before, str | Path):
        raise UsageError("before is a list of files", hint="before=[FILE]")
    places = (None if at is None else Path(at) for at in (vault, vectors))
    return ParentRelease.of_flags(*places, before=bool(before))


@in_python
def compare(
    notes: Notes, out: str | Path, *, label: str | None = None, say: Say | None = None, **options: Any
) -> Comparison:
    """Compare all kinds of release on the same notes: utility on real notes, and risk by adversary.

    Args:
        notes: a path, a frame, or a list of strings (each of a patient of its own).
        out: the folder of the comparison; all of it is secret. The same call again skips finished releases.
        label: the column to classify by.
        say: takes the lines that the command prints on stderr, for example `print`.
        options: the flags of `clinveil compare --help`, with underscores: `patients`, `pairs`, `kind`, `setting`, …

    Returns:
        `releases`, each with `name`, `kind`, `findings`, `gates` and `seconds`, and `folder`.

    Raises InputError for notes that do not fit, UsageError without a label or for an unknown option.
    """
    from clinveil.study.compare.run import compare_releases
    from clinveil.study.compare.settings import CompareSettings

    options = {"workers": 1, **options} | ({} if label is None else {"label": label})
    _told(CompareSettings, options, {}).refuse()
    keep = {"keep": tuple(options[name] for name in ("match",) if name in options)}
    with _on_disk(notes, _place(out), {**keep, **{k: v for k, v in options.items() if k in _OF_NOTES}}) as (path, more):
        return compare_releases(path, Path(out), _told(CompareSettings, options, more), _warning(say))


@in_python
def verify(folder: str | Path) -> list[Check]:
    """Check a release's hashes, schema and manifest; needs no secret. Raises InputError where there is none.

    Returns:
        One `Check` each: what, passed, said.
    """
    from clinveil.releases.manifest import verify as check

    return check(Path(folder))


def _parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options that say which columns are what, and all others."""
    columns = {name: value for name, value in options.items() if name in _OF_NOTES}
    return columns, {name: value for name, value in options.items() if name not in columns}


@contextmanager
def _on_disk(notes: Notes, out: Path, options: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Notes as a file, for runs that read them several times; what is not one lies in a private folder beside OUT.

    Yields its path, and the settings that say which columns of that file are what.
    """
    if isinstance(notes, str | Path):
        yield path_of(notes, "the notes", ONE_TEXT), {}
        return
    corpus = given(notes, **_parted(options)[0]).corpus
    columns = corpus.columns
    with workplace(out) as folder:
        write_corpus(corpus.batches(), folder / "notes.parquet", columns, ".parquet")
        roles = {"text": columns.text, "id": columns.note_id, "patient": columns.patient_id}
        yield folder / "notes.parquet", {name: column for name, column in roles.items() if column is not None}


def _told(kind: type[S], options: Mapping[str, Any], more: Mapping[str, Any]) -> S:
    """Settings from keyword arguments; what may be given several times may be given once, without a list."""
    flags = kind.flags()
    several = {name for name in options if name in flags and get_origin(flags[name].annotation) is tuple}
    given_ = {k: (v,) if k in several and isinstance(v, str) else v for k, v in options.items()}
    return load_settings(kind, {**given_, **more})


def _warning(say: Say | None) -> Say:
    """Says lines, and warns of what a caller who does not listen must know."""

    def said(line: str) -> None:
        if line.startswith(NO_PATIENTS):
            warn(NO_PATIENTS, InputWarning, stacklevel=2)
        (say or _silent)(line)

    return said


def _place(out: Any) -> Path:
    if not isinstance(out, str | Path):
        raise UsageError(f"out cannot be of type {type(out).__name__}", hint="give the path of a folder")
    return Path(out)


def _silent(line: str) -> None:
    pass
