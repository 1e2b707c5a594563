"""The external edition: what of a record may leave, and how small counts are hidden in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clinveil.report.record import AlignedNote, Edition, Fact, Plain, ReleaseRecord

SMALL = 11  # counts of people and notes under this are not printed in the external edition
PEOPLE = frozenset({"patients", "patient", "people", "notes", "note", "names", "name", "rows", "spans", "numbers"})


def external_edition(record: ReleaseRecord, demo: Sequence[AlignedNote]) -> ReleaseRecord:
    """The record of what may leave: the demo note for the sampled ones, internal facts and path-like values out."""
    return replace(
        record,
        edition="external",
        notes=tuple(demo),
        settings=_outward(record.settings),
        context=_outward(record.context),
        provenance=_outward(record.provenance),
        corpus=replace(record.corpus, more=_outward(record.corpus.more)),
    )


def hidden(count: float | None, unit: str, edition: Edition) -> bool:
    """Whether a count of people or notes is too small to be printed in this edition; zero is printed."""
    counted = unit.startswith("own ") or any(word in PEOPLE for word in unit.split())
    return edition == "external" and counted and count is not None and 0 < count < SMALL


def _outward(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    kept = [fact for fact in facts if not fact.internal]
    return tuple(replace(fact, value="(given)") if _telling(fact.value) else fact for fact in kept)


def _telling(value: Plain) -> bool:
    """Whether a value looks like a path or an address; better one too many than one too few."""
    return isinstance(value, str) and any(mark in value for mark in "/\\~@")
