"""The steps before a kind of release is made: identifiers replaced, words counted; for one file and for parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from clinveil.core.progress import shown
from clinveil.corpus.corpus import Corpus
from clinveil.corpus.parts import PartedCorpus
from clinveil.phi.name_index import NameIndex
from clinveil.releases.parts import protect_parts
from clinveil.releases.stages import Making, Preflight, ReleaseContext, protect
from clinveil.vectors.count import WordCounts, count_parts, count_words


def protected(making: Making, heard: Callable[[NameIndex], None]) -> tuple[Corpus, Counter[str] | None, Counter[str]]:
    """The notes with their identifiers treated, the spans found by label, and the notes left out by reason.

    Args:
        heard: gets what the notes say of one another.
    """
    job, both = making.job, making.both
    settings = job.settings
    removal = f"find PHI, and treat it by {settings.identifiers.policy().name}" if settings.phi else "left out"
    with making.clock.stage("identifiers", removal, "keyed"):
        together = both.protect if both and both.given else None
        return (together or (protect_parts if job.facts else protect))(job, heard)


def counted(job: ReleaseContext, found: Preflight, entered: Corpus) -> WordCounts:
    """The words of notes; of part files each counted where it is read."""
    if job.facts and isinstance(entered, PartedCorpus):
        return count_parts(entered.parts, job.folder.work, job.over, job.say)
    over = shown(found.over(job.settings.workers), "notes counted", job.say, found.rows, lambda part: part.n_notes)
    return count_words(entered, job.folder.work, over=over)
