"""The grid: invented notes for every context, class of name, culture, gender and letter case, with gold spans.

Its contexts and names (`contexts.toml`, `grid_names.py`) are not used to train any part of clinveil.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from numpy.random import Generator

from clinveil.core.spans import Span
from clinveil.lexicons.names import name_form
from clinveil.utility.deidentification.grid_names import NameList, Person, name_lists

Case = Literal["as written", "lower", "upper"]
_PIECE = re.compile(r"«(?:(?P<label>[A-Z]+)\|)?(?P<gold>[^»]+)»|\{(?P<he>[A-Za-z ]+)\|(?P<she>[A-Za-z ]+)\}")
_FIELD = re.compile(r"\{(?P<which>given|family|g|f)(?P<second>2?)\}", re.IGNORECASE)
_CHANGES: Mapping[Case, Callable[[str], str]] = {"as written": str, "lower": str.lower, "upper": str.upper}


@dataclass(frozen=True, slots=True)
class Context:
    """A template for names.

    Attributes:
        kind: form of the text (header, comma, signature, …).
        cue: whether the context shows that a name follows.
        cases: letter cases of whole notes.
    """

    number: int
    kind: str
    text: str
    cue: bool
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class GridNote:
    """An invented note with its gold spans and its cell of the grid.

    Attributes:
        case: "lower" or "upper" if the whole note is; also for contexts that are written so.
        sex: "" if the list of names has no gender.
    """

    note_id: str
    text: str
    gold: tuple[Span, ...]
    context: Context
    case: Case
    kind_of_name: str
    culture: str
    sex: str


@cache
def contexts() -> tuple[Context, ...]:
    """Return all contexts in the order of their file."""
    table = tomllib.loads(files(__package__).joinpath("contexts.toml").read_text(encoding="utf-8"))
    return tuple(_context(number, entry) for number, entry in enumerate(table["context"]))


def _context(number: int, entry: Mapping[str, Any]) -> Context:
    cue = entry.get("cue", True)
    usual = ["as written"] if entry["kind"] in ("lower", "capitals") or not cue else list(_CHANGES)
    return Context(number, entry["kind"], entry["text"], cue, tuple(entry.get("cases", usual)))


def grid_notes(rng: Generator, *, each: int = 1) -> Iterator[GridNote]:
    """Yield `each` notes of every cell of context, letter case, class of name and culture."""
    for context in contexts():
        for case in context.cases:
            for (kind_of_name, culture), names in name_lists().items():
                for number in range(each):
                    note_id = f"{context.number}-{case[:1]}-{culture or kind_of_name}-{number}".replace(" ", "-")
                    yield _note(note_id, context, case, (kind_of_name, culture), names, rng)


def _note(note_id: str, context: Context, case: Case, of: tuple[str, str], names: NameList, rng: Generator) -> GridNote:
    person = names.person(rng)
    second = names.person(rng, person.sex)
    text, gold = write(context.text, person, second, case)
    shown: Mapping[str, Case] = {"lower": "lower", "capitals": "upper"}
    case = shown.get(context.kind, case)
    return GridNote(note_id, text, gold, context, case, *of, person.sex if names.gendered else "")


def write(template: str, person: Person, second: Person, case: Case = "as written") -> tuple[str, tuple[Span, ...]]:
    """Return a template with names filled in, and the spans of its identifiers."""
    change, pieces, spans = _CHANGES[case], list[str](), list[Span]()
    done = at = 0

    def add(piece: str) -> None:
        nonlocal at
        pieces.append(piece)
        at += len(piece)

    for match in _PIECE.finditer(template):
        add(change(template[done : match.start()]))
        start, done = at, match.end()
        if match["gold"]:
            add(change(_named(match, person, second)))
            spans.append(Span(start, at, match["label"] or "NAME"))
        else:
            add(change(match["he"] if person.sex == "male" else match["she"]))
    add(change(template[done:]))
    return "".join(pieces), tuple(spans)


def _named(match: re.Match[str], person: Person, second: Person) -> str:
    """Return the identifier of a marker; addresses and user names are in plain lower case."""

    def fill(field: re.Match[str]) -> str:
        of = second if field["second"] else person
        name = of.given if field["which"].lower() in ("given", "g") else of.family
        name = name_form(name) if match["label"] else name
        name = name[0] if len(field["which"]) == 1 else name
        which = field["which"]
        return name.lower() if which.islower() else name.upper() if which.isupper() else name

    return _FIELD.sub(fill, match["gold"])


def sample(rng: Generator, size: int) -> list[GridNote]:
    """Return a random sample of the notes of the grid, in the order of the grid."""
    notes = list(grid_notes(rng))
    return notes if size >= len(notes) else [notes[i] for i in sorted(rng.permutation(len(notes))[:size])]
