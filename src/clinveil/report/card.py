"""The dataset card of a release (`release/README.md`): Markdown with a YAML header, without a word of the source."""

from __future__ import annotations

import json

from clinveil.core.errors import InputError
from clinveil.report.numerals import NONE
from clinveil.report.record import Plain, ReleaseRecord, TokenRow, score
from clinveil.report.render import environment
from clinveil.report.summarise import blocks

# The size classes of public dataset hubs, by their upper ends.
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_MORE = ((10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"), (1_000_000_000, "100M<n<1B"))


def render_card(record: ReleaseRecord) -> str:
    """The card of an external record. Raises InputError for an internal one, which may hold what must not leave."""
    if record.edition != "external":
        raise InputError("a card is made from the external edition only", remedy="use external_edition(record, demo)")
    made = environment().overlay(autoescape=False)
    made.filters |= {"yaml": _yaml, "word": _word, "whole": "{:,}".format}
    return made.get_template("card.md").render(
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
