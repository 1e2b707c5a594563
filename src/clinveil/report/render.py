"""A record to one self-contained HTML page, and to a dataset card (`README.md`), without a word of the source.

The page has no script and makes no request; it is readable in print, in the dark and aloud.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from clinveil.core.files import private_text
from clinveil.core.words import Kind
from clinveil.report import criteria, draw, summarise
from clinveil.report.edition import hidden, hidden_gate
from clinveil.report.measures import clauses, rules
from clinveil.report.numerals import NONE, Number, number, share, small
from clinveil.report.record import AlignedNote, Gate, Plain, ReleaseRecord, TokenRow, score
from clinveil.report.tiles import attack_rows, people, tiles, utility_pairs

NOTE_BYTES = 2_000_000  # of all notes together; keeps the page under 3 MB
TOKEN_MARKUP = 70  # bytes of tags around a token
LONGEST = 60  # characters of a token that are shown
# The size classes of public dataset hubs, by their upper ends.
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_MORE = ((10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"), (1_000_000_000, "100M<n<1B"))
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class ShownNote:
    """A note as far as it is shown, and how many tokens were left out."""

    note: AlignedNote
    shown: int

    @property
    def left_out(self) -> int:
        """Tokens that are not shown."""
        return len(self.note.tokens) - self.shown


def render(record: ReleaseRecord) -> str:
    """The page of this record, in its edition. Headings, tables and words need no script and no network."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    attacks = summarise.of_room(record, "attack")
    repeated = [row for block in attacks if block.name == "attack.inversion_repeated" for row in block.rows]
    page = (
        environment()
        .get_template("page.html")
        .render(
            record=record,
            style=Markup(style),
            style_hash=digest,
            tiles=tiles(record),
            score=score(record.gates),
            gates=sorted(record.gates, key=lambda gate: gate.passed),
            tokens=summarise.accounting(record),
            attacks=attacks,
            utilities=summarise.of_room(record, "utility"),
            detections=summarise.of_room(record, "phi"),
            others=summarise.of_room(record, ""),
            figures={
                "forest": draw.forest(attack_rows(record)),
                "repeats": draw.repeats(repeated),
                "utility": draw.utility(utility_pairs(record)),
                "accounting": draw.accounting(record.accounting),
            },
            notes=_shown(record.notes),
            rules=rules(record),
            clauses=clauses(),
            criteria=criteria.table(record),
            questions=criteria.questions(),
            risks=criteria.risks(record),
        )
    )
    return _CONTROLS.sub("\ufffd", page)


def write_report(record: ReleaseRecord, path: Path) -> None:
    """Write the page of this record, whole or not at all, readable by its owner only."""
    private_text(path, render(record))


@cache
def environment() -> Environment:
    """The templates of this package, with every value escaped."""
    how: dict[str, Any] = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    made = Environment(loader=PackageLoader("clinveil.report"), autoescape=True, **how)
    made.filters |= {"num": data_element, "count": count, "plain": plain, "seconds": seconds}
    made.filters |= {"clip": clip, "md": md, "prose": prose}
    made.globals |= {"gate_number": gate_number, "people": people, "svg": Markup}
    return made


def data_element(shown: Number) -> Markup:
    """A number as `<data>`, whose value is the exact one; what has none is plain text."""
    if shown.value is None:
        return Markup("<span>{}</span>").format(shown.text)
    return Markup('<data value="{}">{}</data>').format(repr(shown.value), shown.text)


def count(value: int) -> Markup:
    """A count as `<data>`."""
    return data_element(number(value, "count"))


def clip(token: str) -> str:
    """A token as far as it is shown."""
    return token if len(token) <= LONGEST else token[:LONGEST] + "…"


def prose(words: str) -> Markup:
    """Words with the names of options (`--name`) set apart."""
    return Markup(re.sub(r"(?<!\S)(--[a-z-]+)", r'<code class="opt">\1</code>', str(escape(words))))


def seconds(value: float | None) -> Number:
    """Wall time for people."""
    if value is None:
        return number(None, "number")
    return Number(f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min", value)


def plain(value: Plain, unit: str = "", edition: str = "internal") -> Markup:
    """A fact's value: yes and no for truths, a dash for nothing, numbers as `<data>` (hidden where small)."""
    if value is None or value == "":
        return Markup("<span>–</span>")
    if isinstance(value, bool):
        return Markup("yes" if value else "no")
    if isinstance(value, str):
        return Markup("{}").format(value)
    if hidden(value, unit, "external" if edition == "external" else "internal"):
        return data_element(small())
    kind: Kind = "share" if unit == "share" else "count" if isinstance(value, int) else "score"
    return data_element(number(value, kind))


def gate_number(gate: Gate, record: ReleaseRecord) -> Markup:
    """What a gate measured; a share of the rows hides the small count behind it."""
    if hidden_gate(gate, record.corpus.read, record.edition):
        return data_element(small())
    unit = "share" if gate.unit.split(" ")[0] == "share" else gate.unit
    return plain(gate.value, unit, record.edition)


def md(value: Any) -> Markup:
    """A value inside Markdown text or a Markdown table: one line, nothing in it is markup."""
    words = " ".join(str(value).split())
    return Markup(re.sub(r"([\\`*_{}\[\]<>#|~!])", r"\\\1", words))


def _style() -> str:
    loader = environment().loader
    assert loader is not None
    return loader.get_source(environment(), "style.css")[0]


def _shown(notes: tuple[AlignedNote, ...]) -> list[ShownNote]:
    return [ShownNote(note, _fitting(note, NOTE_BYTES // len(notes))) for note in notes]


def _fitting(note: AlignedNote, budget: int) -> int:
    """How many tokens of a note fit a budget of bytes, as they are written (each stands in two places)."""
    for position, token in enumerate(note.tokens):
        budget -= TOKEN_MARKUP + 2 * sum(len(escape(clip(word)).encode()) for word in (token.source, token.released))
        if budget < 0:
            return position
    return len(note.tokens)


def card(template: str, **told: Any) -> str:
    """A card from a template; every value is told, none is looked up."""
    made = environment().overlay(autoescape=False)
    made.filters = made.filters | {"yaml": _yaml, "word": _word, "whole": "{:,}".format, "share": share}
    made.filters["figure"] = _figure
    return made.get_template(template).render(told)


def release_card(record: ReleaseRecord) -> str:
    """The card of an external record. Raises ValueError for an internal one, which may hold what must not leave."""
    if record.edition != "external":
        raise ValueError("a card is made from the external edition only")
    return card(
        "card.md",
        record=record,
        total=TokenRow.total(record.accounting),
        blocks=summarise.blocks(record.findings, record.edition),
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
