"""The grid: invented notes for every context, class of name, culture, gender and letter case, with
gold spans.

Its contexts (`contexts.toml`) and names (only from `held_out`) are not used to train any part of
clinveil.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from numpy.random import Generator

from clinveil.core import Span
from clinveil.lexicons import name_form
from clinveil.utility.deidentification.grid_names import GridPerson, name_lists

Case = Literal["as written", "lower", "upper"]
_PIECE = re.compile(
    r"«(?:(?P<label>[A-Z]+)\|)?(?P<gold>[^»]+)»|\{(?P<he>[A-Za-z ]+)\|(?P<she>[A-Za-z ]+)\}"
)
_FIELD = re.compile(r"\{(?P<which>given|family|g|f)(?P<second>2?)\}", re.IGNORECASE)
_CHANGES: Mapping[Case, Callable[[str], str]] = {
    "as written": str,
    "lower": str.lower,
    "upper": str.upper,
}


@dataclass(frozen=True, slots=True)
class NameTemplate:
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
    context: NameTemplate
    case: Case
    kind_of_name: str
    culture: str
    sex: str


@cache
def contexts() -> tuple[NameTemplate, ...]:
    """Return all contexts in the order of their file."""
    table = tomllib.loads(files(__package__).joinpath("contexts.toml").read_text(encoding="utf-8"))
    made = []
    for number, entry in enumerate(table["context"]):
        cue = entry.get("cue", True)
        usual = (
            ["as written"] if entry["kind"] in ("lower", "capitals") or not cue else list(_CHANGES)
        )
        made.append(
            NameTemplate(
                number, entry["kind"], entry["text"], cue, tuple(entry.get("cases", usual))
            )
        )
    return tuple(made)


def grid_notes(rng: Generator, *, each: int = 1) -> Iterator[GridNote]:
    """Yield `each` notes of every cell of context, letter case, class of name and culture."""
    shown: Mapping[str, Case] = {"lower": "lower", "capitals": "upper"}
    cells = ((context, case) for context in contexts() for case in context.cases)
    for context, case in cells:
        for (kind_of_name, culture), names in name_lists().items():
            for number in range(each):
                note_id = f"{context.number}-{case[:1]}-{culture or kind_of_name}-{number}".replace(
                    " ", "-"
                )
                person = names.person(rng)
                text, gold = write(context.text, person, names.person(rng, person.sex), case)
                sex = person.sex if names.gendered else ""
                of = shown.get(context.kind, case)
                yield GridNote(note_id, text, gold, context, of, kind_of_name, culture, sex)


def write(
    template: str, person: GridPerson, second: GridPerson, case: Case = "as written"
) -> tuple[str, tuple[Span, ...]]:
    """Return a template with names filled in, and the spans of its identifiers."""
    change = _CHANGES[case]
    pieces = list[str]()
    spans = list[Span]()
    done = at = 0

    def add(piece: str) -> None:
        nonlocal at
        pieces.append(piece)
        at += len(piece)

    for match in _PIECE.finditer(template):
        add(change(template[done : match.start()]))
        start = at
        done = match.end()
        if match["gold"]:
            add(change(_named(match, person, second)))
            spans.append(Span(start, at, match["label"] or "NAME"))
        else:
            add(change(match["he"] if person.sex == "male" else match["she"]))
    add(change(template[done:]))
    return "".join(pieces), tuple(spans)


def _named(match: re.Match[str], person: GridPerson, second: GridPerson) -> str:
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
    return (
        notes
        if size >= len(notes)
        else [notes[i] for i in sorted(rng.permutation(len(notes))[:size])]
    )
