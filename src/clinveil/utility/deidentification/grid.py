"""The grid: invented notes for every context, class of name, culture, gender and letter case, with gold spans.

Contexts and names are of its own (`contexts.toml`, `grid_names.py`); no trained part of clinveil sees either.
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
    """A text in which names are to be written.

    Attributes:
        kind: of its form (header, comma, signature, …).
        cue: whether a reader can tell from the context that a name comes.
        cases: how whole notes of it are written.
    """

    number: int
    kind: str
    text: str
    cue: bool
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class GridNote:
    """An invented note, where the identifiers of its people stand, and what it is an example of.

    Attributes:
        case: "lower" and "upper" where the letters of the whole note are; also of contexts that are written so.
        sex: "" where the list of names does not tell.
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
    """All contexts, in the order of their file."""
    table = tomllib.loads(files(__package__).joinpath("contexts.toml").read_text(encoding="utf-8"))
    return tuple(_context(number, entry) for number, entry in enumerate(table["context"]))


def _context(number: int, entry: Mapping[str, Any]) -> Context:
    cue = entry.get("cue", True)
    usual = ["as written"] if entry["kind"] in ("lower", "capitals") or not cue else list(_CHANGES)
    return Context(number, entry["kind"], entry["text"], cue, tuple(entry.get("cases", usual)))


def grid_notes(rng: Generator, *, each: int = 1, every: bool = False) -> Iterator[GridNote]:
    """`each` notes of every cell of context, letter case, class of name and culture.

    Args:
        every: also names that are not held out for tests.
    """
    for context in contexts():
        for case in context.cases:
            for (kind_of_name, culture), names in name_lists(every=every).items():
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
    """A template with people's names in it, and where these stand."""
    change, pieces, spans = _CHANGES[case], list[str](), list[Span]()
    place = at = 0

    def add(piece: str) -> None:
        nonlocal at
        pieces.append(piece)
        at += len(piece)

    for match in _PIECE.finditer(template):
        add(change(template[place : match.start()]))
        start, place = at, match.end()
        if match["gold"]:
            add(change(_named(match, person, second)))
            spans.append(Span(start, at, match["label"] or "NAME"))
        else:
            add(change(match["he"] if person.sex == "male" else match["she"]))
    add(change(template[place:]))
    return "".join(pieces), tuple(spans)


def _named(match: re.Match[str], person: Person, second: Person) -> str:
    """The identifier of a marker; of addresses and user names in plain small letters."""

    def fill(field: re.Match[str]) -> str:
        of = second if field["second"] else person
        name = of.given if field["which"].lower() in ("given", "g") else of.family
        name = name_form(name) if match["label"] else name
        name = name[0] if len(field["which"]) == 1 else name
        which = field["which"]
        return name.lower() if which.islower() else name.upper() if which.isupper() else name

    return _FIELD.sub(fill, match["gold"])


def sample(rng: Generator, size: int, *, every: bool = False) -> list[GridNote]:
    """Some notes of the grid, all cells equally likely, in the order of the grid: for a quick look."""
    notes = list(grid_notes(rng, every=every))
    return notes if size >= len(notes) else [notes[i] for i in sorted(rng.permutation(len(notes))[:size])]
