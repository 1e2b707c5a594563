"""Common first stages: replace identifiers and count words, for one file or part files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from clinveil.core.progress import shown
from clinveil.corpus.corpus import Corpus
from clinveil.corpus.open import PartedCorpus
from clinveil.phi.name_index import NameIndex
from clinveil.releases.parts import protect_parts
from clinveil.releases.stages import Making, Preflight, ReleaseContext, protect
from clinveil.vectors.count import WordCounts, count_parts, count_words


def protected(
    making: Making, on_index: Callable[[NameIndex], None]
) -> tuple[Corpus, Counter[str] | None, Counter[str]]:
    """Return the notes with identifiers treated, span counts by label, and skipped notes by reason.

    Args:
        on_index: receives the index of names found in the notes.
    """
    job, series = making.job, making.series
    settings = job.settings
    removal = f"find identifiers, policy {settings.identifiers.policy().name}" if settings.phi else "left out"
    with making.timer.stage("identifiers", removal, "keyed"):
        together = series.protect if series and series.given else None
        return (together or (protect_parts if job.facts else protect))(job, on_index)


def counted(job: ReleaseContext, found: Preflight, entered: Corpus) -> WordCounts:
    """Count the words of notes; part files are counted where they are read."""
    if job.facts and isinstance(entered, PartedCorpus):
        return count_parts(entered.parts, job.folder.work, job.over, job.say)
    over = shown(found.over(job.settings.workers), "notes counted", job.say, found.rows, lambda part: part.n_notes)
    return count_words(entered, job.folder.work, over=over)
