"""What a release that adds to another one says of that: lines for people, facts, warnings, and the manifests' words."""

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
class OnBoth:
    """What was measured on the earlier parts and this one together.

    Attributes:
        names: of attacks, and "utility". otherwise: earlier notes that would be treated otherwise today; None where
            their source is not at hand.
    """

    names: tuple[str, ...] = ()
    otherwise: int | None = None


ALONE = OnBoth()
MOST_UNKNOWN = 0.05  # of the words: beyond, much of what is new is not in the release


def met_lines(added: NewNotes) -> Iterator[str]:
    """What a first pass over the notes met, for people."""
    known, new = added.patients()
    out = added.skipped["released before"]
    yield f"adding to release {added.base.run}: {out:,} notes left before, and are left out"
    yield f"  of the others {added.changed:,} left with another text, and get new ids; {known:,} patients have released"
    yield f"  notes already, and keep their ids, dates and surrogates; {new:,} are new"


def unknown_share(tally: Tally) -> float:
    """Of the words, those that the channel does not know."""
    return tally.unknown / max(1, tally.words)


def unknown_line(added: NewNotes, tally: Tally) -> str:
    """How much of the new notes the channel does not know, for people; with advice where it is much."""
    said = f"{tally.unknown:,} of {tally.words:,} words ({unknown_share(tally):.1%}) are unknown to the channel"
    return f"{said} ({added.base.unknown:.1%} in the release that trained it){_advice(added, tally)}"


def _advice(added: NewNotes, tally: Tally) -> str:
    if unknown_share(tally) <= max(MOST_UNKNOWN, 2 * added.base.unknown):
        return ""
    return ": it is time for a new channel, by a release of all notes under a new key (--again)"


def added_facts(added: NewNotes, tally: Tally, on_both: OnBoth) -> Iterator[Fact]:
    """What the report says of it among the facts of the corpus."""
    known, new = added.patients()
    yield Fact("adds to release", added.base.run)
    yield Fact("patients with notes in it", known, "patients")
    yield Fact("new patients", new, "patients")
    yield Fact("notes with another text than there", added.changed, "notes")
    yield Fact("words that its channel does not know", tally.unknown)
    yield Fact("measured on all its notes and these", ", ".join(on_both.names) or "nothing")
    if on_both.otherwise is not None:
        yield Fact("of its notes, those that would be treated otherwise today", on_both.otherwise, "notes")


def added_warnings(added: NewNotes, tally: Tally, on_both: OnBoth) -> Iterator[str]:
    """What whoever reads the report must know of it."""
    yield f"These notes were added to release {added.base.run}: whoever holds both holds one. {_measured_on(on_both)}"
    if on_both.otherwise:
        yield (
            "Some notes of the release that was added to would be treated otherwise today, for the new notes say names "
            "that were not heard then. They stay as they left."
        )
    if advice := _advice(added, tally):
        yield f"{unknown_share(tally):.0%} of the words are unknown to the channel{advice}."
    if added.changed:
        yield (
            "Notes that left before with another text stand here once more, under new ids: two draws of what both "
            "texts say."
        )


def _measured_on(on_both: OnBoth) -> str:
    if "utility" in on_both.names:
        return "Figures are of both together; gates were held against both, and against these notes alone."
    if not on_both.names:
        return "That one was not at hand: all figures are of these notes alone."
    some = "What released notes alone show was measured on both"
    return f"{some}; what needs the source, which is not kept, on these notes alone (--with measures it on both)."


def nth_of(job: ReleaseContext) -> int:
    """Which release under its key it is, from 1 on."""
    return job.added.base.nth + 1 if job.added else 1


def adds_to(job: ReleaseContext, edition: Edition) -> dict[str, Any]:
    """What the manifest says of the release that this one adds to; nothing of the first under its key."""
    if job.added is None:
        return {}
    told = job.added.base.told
    inside = {**told, "beside": job.added.beside}
    return {"adds_to": inside if edition == "internal" else {name: told[name] for name in ("run", "nth")}}


def files_of(settings: ReleaseSettings) -> dict[str, str]:
    """SHA-256 of the files that say what is written, by the flag that names them."""
    places = {name: value for name, value in settings.flat().items() if name in FILES and value is not None}
    return {name: fingerprint(Path(place)) for name, place in places.items()}
