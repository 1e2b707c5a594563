"""Render a record as one self-contained HTML page and as a release card (`README.md`).

The page has no script and makes no request. It works in print, in dark mode and with a screen
reader.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from clinveil.core import NumberKind
from clinveil.report import risks
from clinveil.report.cells import FindingRow, accounting, sentence
from clinveil.report.numerals import Number, number, small
from clinveil.report.outward import hidden, hidden_gate
from clinveil.report.page_one import clipped, default_of, first_page, uses
from clinveil.report.record import AlignedNote, ReleaseRecord
from clinveil.report.verdict import OUTCOMES, Gate, Plain

NOTE_BYTES = 2_000_000  # of all aligned notes together; keeps the page under 3 MB
TOKEN_MARKUP = 70  # bytes of tags around a token
LONGEST = 60  # characters of a token that are shown
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def render(record: ReleaseRecord) -> str:
    """Return the HTML page of this record."""
    style, style_hash = _style()
    page = (
        environment()
        .get_template("page.html")
        .render(
            record=record,
            style=style,
            style_hash=style_hash,
            front=first_page(record),
            gates=sorted(record.gates, key=lambda gate: OUTCOMES.index(gate.outcome)),
            table=risks.table(record),
            other_attacks=risks.other_attacks(record),
            uses=uses(record),
            tokens=accounting(record.accounting),
            criteria=risks.criteria(record),
            rules=risks.rules(record),
        )
    )
    return _CONTROLS.sub("\ufffd", page)


def render_sample(notes: Sequence[AlignedNote], run: str) -> str:
    """Return the HTML page of sampled notes, source next to release; it is secret."""
    style, style_hash = _style()
    page = (
        environment()
        .get_template("sample.html")
        .render(
            version=version("clinveil"),
            run=run,
            style=style,
            style_hash=style_hash,
            notes=[(note, _fitting(note, NOTE_BYTES // len(notes))) for note in notes],
        )
    )
    return _CONTROLS.sub("\ufffd", page)


def _style() -> tuple[Markup, str]:
    """Return the style sheet and its hash, which the page's policy names."""
    loader = environment().loader
    assert loader is not None
    style = loader.get_source(environment(), "style.css")[0]
    return Markup(style), base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


@cache
def environment() -> Environment:
    """Return the template environment of this package; every value is escaped."""
    made = Environment(
        loader=PackageLoader("clinveil.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "num": data_element,
        "count": count,
        "plain": plain,
        "clip": clip,
        "md": md,
    }
    made.filters |= {"cut": clipped, "sentence": sentence}
    made.globals |= {"gate_number": gate_number, "gate_limit": gate_limit, "success": success}
    made.globals |= {"people": people, "default_of": default_of}
    return made


def data_element(shown: Number) -> Markup:
    """Return a number as `<data>` with its exact value; a number without a value is plain text."""
    if shown.value is None:
        return Markup("<span>{}</span>").format(shown.text)
    return Markup('<data value="{}">{}</data>').format(repr(shown.value), shown.text)


def count(value: int) -> Markup:
    """Return a count as `<data>`."""
    return data_element(number(value, "count"))


def people(value: int | None, unit: str) -> Number:
    """Return a count of people or notes as it may be printed."""
    return small() if hidden(value, unit) else number(value, "count")


def clip(token: str) -> str:
    """Return a token, cut to `LONGEST` characters."""
    return token if len(token) <= LONGEST else token[:LONGEST] + "…"


def plain(value: Plain, unit: str = "") -> Markup:
    """Return a fact's value: yes or no, a dash for nothing, numbers as `<data>` (hidden where
    small).
    """
    if value is None or value == "":
        return Markup("<span>–</span>")
    if isinstance(value, bool):
        return Markup("yes" if value else "no")
    if isinstance(value, str):
        return Markup("{}").format(value)
    if hidden(value, unit):
        return data_element(small())
    kind: NumberKind = (
        "share"
        if unit == "share"
        else "count"
        if isinstance(value, int)
        else "score"
        if abs(value) < 10
        else "number"
    )
    return data_element(number(value, kind))


def gate_number(gate: Gate, record: ReleaseRecord) -> Markup:
    """Return what a gate measured; a small count, or a share of the rows that discloses one, is
    hidden.
    """
    if hidden_gate(gate, record.corpus.read):
        return data_element(small())
    unit = "share" if gate.unit.split(" ")[0] == "share" else gate.unit
    is_p = gate.unit.startswith("P value") and gate.value is not None
    return Markup("P = " if is_p else "") + plain(gate.value, unit)


_OF_NOBODY = ("residues", "known_names")
"""Risks with a limit other than a number of patients."""


def gate_limit(gate: Gate) -> Markup:
    """Return the limit of a gate; text is cut, and an allowed number of patients is hidden if
    small.
    """
    if gate.unit.startswith("P value") or gate.risk == "known_names":
        return Markup("chance")
    if gate.risk == "use":
        return Markup("above {}").format(plain(gate.limit, "share"))
    if isinstance(gate.limit, str):
        return Markup("{}").format(clipped(gate.limit, 40))
    return plain(gate.limit, "" if gate.risk in _OF_NOBODY else gate.unit.split(" ")[0])


def success(row: FindingRow) -> Markup:
    """Return the value of a row; a hidden one is a count, printed with the number of cases and
    their unit.
    """
    value = data_element(row.value)
    return (
        value + Markup(" of {} {}").format(data_element(row.n), row.unit) if row.hidden else value
    )


def hits(row: FindingRow) -> str:
    """Return `success` as plain text."""
    return f"{row.value.text} of {row.n.text} {row.unit}" if row.hidden else row.value.text


def md(value: Any) -> Markup:
    """Return a value as one line of Markdown without markup."""
    words = " ".join(str(value).split())
    return Markup(re.sub(r"([\\`*_{}\[\]<>#|~!])", r"\\\1", words))


def _fitting(note: AlignedNote, budget: int) -> int:
    """Return how many tokens of a note fit a budget of bytes."""
    for position, token in enumerate(note.tokens):
        budget -= TOKEN_MARKUP + sum(
            len(escape(clip(word)).encode()) for word in (token.source, token.released)
        )
        if budget < 0:
            return position
    return len(note.tokens)


def release_card(record: ReleaseRecord, notes: str = "notes.parquet") -> str:
    """Return the card of a release; `notes` is the file of the released notes."""
    front = first_page(record)
    columns = record.corpus.columns
    made = environment().overlay(autoescape=False)
    made.filters = made.filters | {
        "yaml": lambda words: json.dumps(" ".join(words.split())),
        "hits": hits,
    }
    return made.get_template("card.md").render(
        record=record,
        front=front,
        notes=notes,
        text=next(
            (column.name for column in columns if column.disposition.startswith("text")), "text"
        ),
        label=next((column.name for column in columns if "label" in column.disposition), ""),
    )
