"""Lines, facts, warnings and manifest entries of a release that adds to an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinveil.channel.tally import Tally
from clinveil.core.runfolder import fingerprint
from clinveil.releases.new_notes import NewNotes
from clinveil.releases.parent import FILES
from clinveil.releases.settings import ReleaseSettings
from clinveil.report.record import Edition, Fact

if TYPE_CHECKING:
    from clinveil.releases.stages import ReleaseContext


@dataclass(frozen=True)
class SeriesCoverage:
    """What was measured on all releases of a series together.

    Attributes:
        names: names of attacks, and "utility". otherwise: earlier notes that would be treated differently today; None
            if their source is not available.
    """

    names: tuple[str, ...] = ()
    otherwise: int | None = None


ALONE = SeriesCoverage()
MOST_UNKNOWN = 0.05  # share of unknown words above which a new channel is advised


def met_lines(added: NewNotes) -> Iterator[str]:
    """Yield the counts of the first pass over the notes, as lines of text."""
    known, new = added.patients()
    out = added.skipped["released before"]
    yield f"adding to release {added.base.run}: {out:,} notes were released before and are left out"
    yield f"  {added.changed:,} notes were released with another text and get new ids"
    yield f"  {known:,} patients have released notes and keep ids, dates and surrogates; {new:,} patients are new"


def unknown_share(tally: Tally) -> float:
    """Return the share of words that the channel does not contain."""
    return tally.unknown / max(1, tally.words)


def unknown_line(added: NewNotes, tally: Tally) -> str:
    """Return the share of unknown words as text, with advice if it is large."""
    share = f"{tally.unknown:,} of {tally.words:,} words ({unknown_share(tally):.1%}) are not in the channel"
    return f"{share} ({added.base.unknown:.1%} in the release that trained it){_advice(added, tally)}"


def _advice(added: NewNotes, tally: Tally) -> str:
    if unknown_share(tally) <= max(MOST_UNKNOWN, 2 * added.base.unknown):
        return ""
    return ": release all notes under a new key to train a new channel (--again)"


def added_facts(added: NewNotes, tally: Tally, coverage: SeriesCoverage) -> Iterator[Fact]:
    """Yield the facts for the report."""
    known, new = added.patients()
    yield Fact("adds to release", added.base.run)
    yield Fact("patients with notes in it", known, "patients")
    yield Fact("new patients", new, "patients")
    yield Fact("notes released before with another text", added.changed, "notes")
    yield Fact("words not in its channel", tally.unknown)
    yield Fact("measured on both releases together", ", ".join(coverage.names) or "nothing")
    if coverage.otherwise is not None:
        yield Fact("earlier notes that would be treated differently today", coverage.otherwise, "notes")


def added_warnings(added: NewNotes, tally: Tally, coverage: SeriesCoverage) -> Iterator[str]:
    """Yield the warnings for the report."""
    yield f"These notes were added to release {added.base.run}: treat both as one release. {_measured_on(coverage)}"
    if coverage.otherwise:
        yield (
            "Some earlier notes would be treated differently today, because the new notes contain names that were "
            "unknown then. They remain as released."
        )
    if advice := _advice(added, tally):
        yield f"{unknown_share(tally):.0%} of the words are not in the channel{advice}."
    if added.changed:
        yield (
            "Notes that were released before with another text occur again under new ids: their common text was drawn "
            "twice."
        )


def _measured_on(coverage: SeriesCoverage) -> str:
    if "utility" in coverage.names:
        return "Figures cover both together. Gates were applied to both together and to these notes alone."
    if not coverage.names:
        return "The earlier release was not available: all figures cover these notes alone."
    return (
        "Attacks that need only released notes were measured on both together, the others on these notes alone (--with "
        "measures all on both)."
    )


def nth_of(job: ReleaseContext) -> int:
    """Return the number of this release under its key, from 1 on."""
    return job.added.base.nth + 1 if job.added else 1


def adds_to(job: ReleaseContext, edition: Edition) -> dict[str, Any]:
    """Return the manifest entry on the release that this one adds to; empty for the first under its key."""
    if job.added is None:
        return {}
    entry = job.added.base.manifest_entry
    private = {**entry, "beside": job.added.joint}
    return {"adds_to": private if edition == "internal" else {name: entry[name] for name in ("run", "nth")}}


def files_of(settings: ReleaseSettings) -> dict[str, str]:
    """Return the SHA-256 of files that determine the output, by setting."""
    places = {name: value for name, value in settings.flat().items() if name in FILES and value is not None}
    return {name: fingerprint(Path(place)) for name, place in places.items()}
