"""`clinveil mitigate`: word vectors that tell less, to be attacked again before they leave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinveil.cli.options import Out, settings_command
from clinveil.core.outputs import Maker
from clinveil.core.settings import Settings, flag

if TYPE_CHECKING:
    from clinveil.vectors.table import Vectors

app = typer.Typer(add_completion=False)
MAKER = Maker("mitigate")


class MitigateSettings(Settings):
    """Everything that `clinveil mitigate` can be told."""

    scrub_top: int | None = flag(
        None, "Keep a word if it is among this many most frequent ones, or a clinical word and no name.", ge=0
    )
    patients: Path | None = flag(None, "Known patients: their names join the list of names of --scrub-top.")
    min_patients: int | None = flag(None, "Drop words seen in the notes of fewer patients.", ge=1)
    noise: float | None = flag(
        None, "Add Gaussian noise of this standard deviation, in root mean squares of the vectors.", ge=0
    )
    seed: int | None = flag(None, "A public seed of the noise, for tests and studies: not for release.", ge=0)
    quiet: bool = flag(False, "No messages on stderr.", short="-q")
    force: bool = flag(False, "Replace an existing OUT (the old one is kept aside until success).")


@settings_command(app, MitigateSettings, name="mitigate")
def mitigate(
    settings: MitigateSettings,
    vectors: Annotated[Path, typer.Argument(help="Vectors: a folder of clinveil embed, .vec, .txt or .bin.")],
    out: Out,
) -> None:
    """Take words out of vectors or add noise to them; then attack them again, for nothing here is a guarantee."""
    from clinveil.core.errors import UsageError
    from clinveil.core.files import refuse_existing, refuse_nested
    from clinveil.vectors.files import load_vectors, save_vectors

    if settings.scrub_top is None and settings.min_patients is None and settings.noise is None:
        raise UsageError("nothing to do", remedy="give --scrub-top, --min-patients or --noise")
    refuse_nested(OUT=out, VECTORS=vectors, **{"--patients": settings.patients})
    refuse_existing(out, force=settings.force, maker=MAKER)
    before = load_vectors(vectors)
    known = _known_names(settings.patients)
    after = _noisy(settings, _fewer(settings, before, known))
    save_vectors(after, out, force=settings.force, maker=MAKER)
    if not settings.quiet:
        typer.echo(f"{len(after)} of {len(before)} words kept, in {out.name}", err=True)
        if known:
            typer.echo(f"{len(known.intersection(after.words))} words of the patients' names are among them", err=True)
        typer.echo("attack these vectors again: fewer words and noise are no guarantee", err=True)


def _fewer(settings: MitigateSettings, vectors: Vectors, known: frozenset[str]) -> Vectors:
    from clinveil.lexicons.names import name_form
    from clinveil.vectors.mitigate import census_names, drop_rare, scrub

    if settings.scrub_top is not None:
        vectors = scrub(vectors, settings.scrub_top, census_names() | frozenset(map(name_form, known)))
    if settings.min_patients is not None:
        vectors = drop_rare(vectors, settings.min_patients)
    return vectors


def _known_names(patients: Path | None) -> frozenset[str]:
    """The lookup forms of known patients' name words, single letters left out."""
    from clinveil.core.tokens import words
    from clinveil.corpus.people import read_names

    names = read_names(patients) if patients else ()
    return frozenset(form for name in names for form in words(" ".join(name)) if len(form) > 1)


def _noisy(settings: MitigateSettings, vectors: Vectors) -> Vectors:
    from clinveil.core.keys import Key
    from clinveil.vectors.mitigate import add_noise

    if settings.noise is None:
        return vectors
    if settings.seed is not None:
        typer.echo("TEST SEED: not for release", err=True)
    # The key is kept nowhere: whoever has it can take the noise away.
    return add_noise(vectors, settings.noise, Key.generate() if settings.seed is None else Key.from_seed(settings.seed))
