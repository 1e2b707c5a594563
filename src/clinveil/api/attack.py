"""Attacks on releases and vectors, evaluated against the ground truth.

`run` runs any registered attack by name; every registered attack is also an attribute, as `attack.linkage(context)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.random import default_rng

from clinveil.api.frames import Notes, given, in_python, known_patients, path_of, scratch
from clinveil.attacks.attack import Context, attacks
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.load_settings import load_settings

if TYPE_CHECKING:
    from clinveil.channel.channel import Channel
    from clinveil.vectors.table import Vectors

Patients = Any
"""A patients file, or what `read_patients` returns: id -> `Patient`."""
__all__ = ["Context", "association", "copies", "identifiers", "inversion", "names", "overlap", "run", "scenario"]


@in_python
def run(name: str, context: Context, *, seed: int = 1, **settings: Any) -> list[Finding]:
    """Run a registered attack, built-in or from another distribution.

    Args:
        name: as in `clinveil attack --help`, or as registered. context: the data available to the attack.
        seed: of all random draws. settings: the attack's own settings.

    Raises UsageError for an unknown name or setting, or if the context lacks data that the attack needs.
    """
    kind = attacks.get(name)
    attack = load_settings(kind, settings)
    if not context.has(kind.needs):
        missing = f"the attack {name} needs {', '.join(sorted(kind.needs))}"
        raise UsageError(missing, hint="pass all of them in the context")
    return attack(context, default_rng(seed))


@in_python
def inversion(
    channel: Channel, notes: Notes, *, patients: Patients = None, seed: int = 1, columns: Any = None, **settings: Any
) -> list[Finding]:
    """Return how often an attacker with the channel guesses a word correctly from its replacement (exact).

    Args:
        channel: for example `Obfuscator.channel_`. notes: the notes that it is applied to.
        patients: known patients, to measure their names too. columns: column roles of a frame.

    Raises InputError for invalid notes.

    >>> import clinveil
    >>> notes = clinveil.demo_corpus(patients=60, seed=1)
    >>> made = clinveil.Obfuscator(n=3, settings={"epochs": 1}).fit(notes)
    >>> found = clinveil.attack.inversion(made.channel_, notes)
    >>> found[0].measure, found[0].value > found[0].chance
    ('attack.inversion', True)
    """
    from clinveil.vectors.count import count_words

    corpus = given(notes, **(columns or {})).corpus
    with scratch() as folder:
        counts = count_words(corpus, folder)
    context = Context(channel=channel, counts=counts, original=corpus, known=known_patients(patients))
    return run("inversion", context, seed=seed, **settings)


@in_python
def names(
    vectors: Vectors | str | Path | Sequence[Vectors],
    people: Any,
    *,
    seed: int = 1,
    workers: int = 2,
    **settings: Any,
) -> list[Finding]:
    """Pair the name tokens of word vectors into full names, by similarity (paper B, experiment 1).

    Args:
        vectors: the vectors to be released, or their path; several are compared.
        people: the true full names: a file, patients by id, or a list of full names as strings or tuples of tokens.
        settings: `metric`, `k`, `draws`, `surrogates`.

    Raises InputError for fewer than two name tokens with a vector.
    """
    return run("names", Context(vectors=_models(vectors), names=_names(people), workers=workers), seed=seed, **settings)


@in_python
def association(
    vectors: Vectors | str | Path, patients: Patients, codes: Any, *, seed: int = 1, workers: int = 2, **settings: Any
) -> list[Finding]:
    """Compare distances between names and diagnoses of the same and of other patients (paper B, experiment 2).

    Args:
        patients: a patients file, or id -> `Patient`. codes: a code table (code, description), or code -> words.
    """
    return run("association", _with_codes(vectors, patients, codes, workers), seed=seed, **settings)


@in_python
def scenario(
    vectors: Vectors | str | Path, patients: Patients, codes: Any, *, seed: int = 1, workers: int = 2, **settings: Any
) -> list[Finding]:
    """Predict diagnoses for each name by distance, and compare with chance (paper B, experiment 3).

    Args:
        patients, codes: as in `association`.
    """
    return run("scenario", _with_codes(vectors, patients, codes, workers), seed=seed, **settings)


@in_python
def copies(
    synthetic: Notes, training: Notes, held_out: Notes, *, seed: int = 1, columns: Any = None, **settings: Any
) -> list[Finding]:
    """Find word sequences that synthetic notes share with training notes, compared with held-out notes.

    Args:
        training, held_out: the model's training notes, and similar other notes. columns: column roles of frames.
    """
    sides = [given(notes, **(columns or {})).corpus for notes in (synthetic, training, held_out)]
    context = Context(released=sides[0], training=sides[1], held_out=sides[2])
    return run("copies", context, seed=seed, **settings)


@in_python
def overlap(
    released: Notes, original: Notes, *, crosswalk: Mapping[str, str] | None = None, seed: int = 1, columns: Any = None
) -> list[Finding]:
    """Measure how much of released notes occurs verbatim in their sources, compared with other notes.

    Args:
        crosswalk: released note id -> source id; without it ids must be equal.
    """
    sides = [given(notes, **(columns or {})).corpus for notes in (released, original)]
    return run("overlap", Context(released=sides[0], original=sides[1], notes=crosswalk), seed=seed)


@in_python
def identifiers(
    released: Notes,
    patients: Patients,
    *,
    original: Notes = None,
    crosswalk: Mapping[str, str] | None = None,
    seed: int = 1,
    columns: Any = None,
) -> list[Finding]:
    """Search released notes, and the source if given, for the identifiers of known patients.

    Args:
        patients: a patients file, or id -> `Patient`. crosswalk: released patient id -> source id.
    """
    sides = [None if n is None else given(n, **(columns or {})).corpus for n in (released, original)]
    context = Context(released=sides[0], original=sides[1], known=known_patients(patients), patients=crosswalk)
    return run("identifiers", context, seed=seed)


def _names(people: Any) -> list[tuple[str, ...]]:
    from clinveil.attacks.vectors.names import read_full_names

    if isinstance(people, str | Path):
        return read_full_names(path_of(people, "the names", "check the path; pass names as a list: [name]"))
    if not isinstance(people, Mapping | list | tuple):
        hint = "pass a file, a dictionary id -> clinveil.Patient, or a list of full names"
        raise UsageError(f"names cannot be of type {type(people).__name__}", hint=hint)
    names = [patient.name for patient in people.values()] if isinstance(people, Mapping) else people
    return [tuple(name.split()) if isinstance(name, str) else tuple(name) for name in names]


def _models(vectors: Any) -> list[Vectors]:
    from clinveil.vectors.files import load_vectors
    from clinveil.vectors.table import Vectors

    single = isinstance(vectors, str | Path | Vectors)
    return [load_vectors(Path(v)) if isinstance(v, str | Path) else v for v in ([vectors] if single else vectors)]


def _with_codes(vectors: Any, patients: Patients, codes: Any, workers: int) -> Context:
    from clinveil.corpus.people import read_codes

    read = read_codes(Path(codes)) if isinstance(codes, str | Path) else codes
    return Context(vectors=_models(vectors), known=known_patients(patients), codes=read, workers=workers)


def __getattr__(name: str) -> Any:
    """Return any registered attack as a function of a `Context`, with hyphens as underscores."""
    registered = name.replace("_", "-")
    if name.startswith("_") or registered not in attacks:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(run, registered)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name.replace("-", "_") for name in attacks.names())})
