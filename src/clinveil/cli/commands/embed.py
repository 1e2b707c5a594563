"""`clinveil embed`: Train word vectors on notes."""

from __future__ import annotations

from clinveil.cli.command import Run, command
from clinveil.cli.options import NotesOrQuery, Out
from clinveil.cli.progress import say
from clinveil.core import (
    FORCE,
    QUIET,
    SEED,
    LabelledNotesSettings,
    Maker,
    Settings,
    group,
    refuse_places,
    setting,
    workplace,
)
from clinveil.corpus import NO_PATIENTS, open_corpus
from clinveil.vectors import VectorSettings, need_gensim, save_vectors, train

MAKER = Maker("embed")


class EmbedSettings(Settings):
    """Settings of `clinveil embed`."""

    vectors: VectorSettings = group(VectorSettings)
    notes: LabelledNotesSettings = group(LabelledNotesSettings)
    quiet: bool = QUIET
    force: bool = FORCE
    workers: int = setting(
        2, "Threads; with more than one, cbow and fasttext are not repeatable.", ge=1, le=1024
    )
    seed: int | None = SEED


@command(
    "embed",
    EmbedSettings,
    flags="vectors.algorithm vectors.dim vectors.more_text workers seed force quiet",
)
def embed(run: Run[EmbedSettings], notes: NotesOrQuery, out: Out) -> None:
    """Train word vectors on notes; they disclose words of the notes, so they are secret too."""
    how = run.settings
    refuse_places(
        out, MAKER, force=how.force, read={"NOTES": notes, "--more-text": how.vectors.more_text}
    )
    need_gensim(how.vectors.algorithm)
    corpus = open_corpus(notes, how.notes).without_markup()
    if corpus.columns.patient_id is None:
        run.say(NO_PATIENTS)
    with workplace(out) as scratch, run.say.count("passes") as show:
        vectors = train(
            corpus,
            how.vectors,
            seed=run.seed,
            workers=how.workers,
            scratch=scratch,
            on_epoch=lambda done, _: show(done),
        )
    save_vectors(vectors, out, force=how.force, maker=MAKER)
    made = f"{len(vectors)} words of {vectors.dim} dimensions, {vectors.meta['epochs']} passes"
    run.say(f"{made}, {vectors.meta['determinism']}, in {out.name}")
    if out.suffix in (".vec", ".txt", ".bin"):
        run.say(f"a {out.suffix} file has no counts: a release counts words in its own notes")
    say("SECRET: word vectors disclose words of the notes; protect them like the notes")
