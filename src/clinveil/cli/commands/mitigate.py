"""`clinveil mitigate`: Take words out of vectors, or add noise, before they are attacked again."""

from __future__ import annotations

from pathlib import Path

from clinveil.cli.command import Run, command
from clinveil.cli.options import Out, VectorFile
from clinveil.cli.progress import say
from clinveil.core.errors import UsageError
from clinveil.core.files import Maker, refuse_places
from clinveil.core.keys import TEST_SEED, Key
from clinveil.core.settings import FORCE, Settings, flag
from clinveil.core.tokens import words
from clinveil.corpus.people import read_names
from clinveil.lexicons.names import name_form
from clinveil.vectors.files import load_vectors, save_vectors
from clinveil.vectors.mitigate import add_noise, census_names, drop_rare, scrub
from clinveil.vectors.table import Vectors

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
    force: bool = FORCE


@command("mitigate", MitigateSettings)
def mitigate(run: Run[MitigateSettings], vectors: VectorFile, out: Out) -> None:
    """Take words out of vectors or add noise to them; then attack them again, for nothing here is a guarantee."""
    how = run.settings
    if how.scrub_top is None and how.min_patients is None and how.noise is None:
        raise UsageError("nothing to do", hint="give --scrub-top, --min-patients or --noise")
    refuse_places(out, MAKER, force=how.force, read={"VECTORS": vectors, "--patients": how.patients}, apart=True)
    before, known = load_vectors(vectors), _known_names(how.patients)
    after = _noisy(how, _fewer(how, before, known))
    save_vectors(after, out, force=how.force, maker=MAKER)
    run.say(f"{len(after)} of {len(before)} words kept, in {out.name}")
    if known:
        run.say(f"{len(known.intersection(after.words))} words of the patients' names are among them")
    run.say("attack these vectors again: fewer words and noise are no guarantee")


def _fewer(how: MitigateSettings, vectors: Vectors, known: frozenset[str]) -> Vectors:
    if how.scrub_top is not None:
        vectors = scrub(vectors, how.scrub_top, census_names() | frozenset(map(name_form, known)))
    return vectors if how.min_patients is None else drop_rare(vectors, how.min_patients)


def _known_names(patients: Path | None) -> frozenset[str]:
    """The lookup forms of known patients' name words, single letters left out."""
    names = read_names(patients) if patients else ()
    return frozenset(form for name in names for form in words(" ".join(name)) if len(form) > 1)


def _noisy(how: MitigateSettings, vectors: Vectors) -> Vectors:
    if how.noise is None:
        return vectors
    if how.seed is not None:
        say(TEST_SEED)
    # The key is kept nowhere: whoever has it can take the noise away.
    return add_noise(vectors, how.noise, Key.generate() if how.seed is None else Key.from_seed(how.seed))
