"""Dataset cards (`README.md`): Markdown with a YAML header, without a word of the source."""

from __future__ import annotations

import json
from typing import Any

from clinveil.report.edition import hidden
from clinveil.report.numerals import NONE, number, share, small
from clinveil.report.record import Gate, Plain, ReleaseRecord, TokenRow, score
from clinveil.report.render import environment
from clinveil.report.summarise import blocks

# The size classes of public dataset hubs, by their upper ends.
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_MORE = ((10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"), (1_000_000_000, "100M<n<1B"))


def card(template: str, **told: Any) -> str:
    """A card from a template; every value is told, none is looked up."""
    made = environment().overlay(autoescape=False)
    made.filters = made.filters | {
        "yaml": _yaml,
        "word": _word,
        "whole": "{:,}".format,
        "share": share,
        "figure": _figure,
    }
    return made.get_template(template).render(told)


def release_card(record: ReleaseRecord) -> str:
    """The card of an external record. Raises ValueError for an internal one, which may hold what must not leave."""
    if record.edition != "external":
        raise ValueError("a card is made from the external edition only")
    return card(
        "card.md",
        record=record,
        total=TokenRow.total(record.accounting),
        blocks=blocks(record.findings, record.edition),
        score=score(record.gates),
        size=size_class(record.corpus.notes),
    )


def size_class(notes: int) -> str:
    """The size class of a number of notes as dataset hubs name it."""
    return next((name for limit, name in (*_SIZES, *_MORE) if notes < limit), "n>1B")


def _yaml(words: str) -> str:
    """A YAML scalar: a JSON string is one."""
    return json.dumps(" ".join(words.split()), ensure_ascii=True)


def _word(value: Plain) -> str:
    if value is None or value == "":
        return NONE
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _figure(gate: Gate, value: Plain) -> str:
    """What a gate measured or allows; small counts of people's names are hidden as in other external reports."""
    if not isinstance(value, float | int):
        return _word(value)
    if hidden(value, gate.unit, "external"):
        return small().text
    return number(value, "share" if gate.unit.startswith("share") else "count").text
