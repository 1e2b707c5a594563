"""Compile templates to lists of pieces, and expand them quickly.

A template contains literal text and braces: `{slot}` is looked up in the note's vocabulary,
`{a|b|}` chooses one part (which may contain braces), `{60-90}` or `{1.5-9.0}` is a number in that
range. `{^slot}` is capitalised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from clinveil.core import InputError

T = TypeVar("T")
Draw: TypeAlias = Callable[[], float]


class Production(NamedTuple):
    """A compiled template: literal text, then (slot, literal text) pairs; a slot is a name or an
    inline choice.
    """

    head: str
    rest: tuple[tuple[str | tuple[Production, ...], str], ...] = ()


class Phi(NamedTuple):
    """A piece of PHI text with its label."""

    label: str
    text: str


class Deck:
    """Alternatives that one note uses in turn, to avoid repetition."""

    __slots__ = ("capital", "plain", "position")

    def __init__(self, plain: Alternatives, capital: Alternatives, position: int) -> None:
        self.plain = plain
        self.capital = capital
        self.position = position


Alternatives: TypeAlias = tuple[Production, ...]
Entry: TypeAlias = Alternatives | str | Phi | Deck | Callable[[], Phi]
Vocabulary: TypeAlias = dict[str, Entry]

_SLOT = re.compile(r"\^?[a-z][a-z0-9_]*")
_RANGE = re.compile(r"(\d+(?:\.(\d+))?)-(\d+(?:\.\d+)?)")
_WEIGHT = re.compile(r"(\d+)\*(.*)", re.DOTALL)
MAX_VALUES = 200


def compile_rule(phrases: str | Iterable[str]) -> Alternatives:
    """Compile a rule: phrases separated by ";" (stripped) or a list of templates; the prefix "3*"
    is a weight of 3.
    """
    parts = [p.strip() for p in phrases.split(";")] if isinstance(phrases, str) else phrases
    alternatives: list[Production] = []
    for part in parts:
        weighted = _WEIGHT.fullmatch(part)
        times, template = (int(weighted[1]), weighted[2]) if weighted else (1, part)
        alternatives += [compile_template(template)] * times
    return tuple(alternatives)


def compile_template(template: str) -> Production:
    """Compile one template. Raises InputError for unbalanced braces or an invalid slot name."""
    head = ""
    position = 0
    rest: list[tuple[str | Alternatives, str]] = []
    while (opening := template.find("{", position)) >= 0:
        literal = template[position:opening]
        closing = _closing(template, opening)
        if rest:
            rest[-1] = (rest[-1][0], literal)
        else:
            head = literal
        rest.append((_slot(template[opening + 1 : closing]), ""))
        position = closing + 1
    if not rest:
        return Production(template)
    rest[-1] = (rest[-1][0], template[position:])
    return Production(head, tuple(rest))


def _closing(template: str, opening: int) -> int:
    depth = 0
    for position in range(opening, len(template)):
        depth += {"{": 1, "}": -1}.get(template[position], 0)
        if depth == 0:
            return position
    raise InputError(
        "unbalanced braces in a template of the demo corpus", hint="close each { with }"
    )


def _slot(inside: str) -> str | Alternatives:
    if _SLOT.fullmatch(inside):
        return inside
    if number := _RANGE.fullmatch(inside):
        return _values(number[1], number[3], len(number[2] or ""))
    choices = _split(inside)
    if len(choices) < 2:
        part = "invalid slot in a template of the demo corpus"
        raise InputError(part, hint="a slot is a name, a choice {a|b} or a range {1-9}")
    return tuple(compile_template(choice) for choice in choices)


def _split(inside: str) -> list[str]:
    """Split at the bars outside inner braces."""
    parts = [""]
    depth = 0
    for character in inside:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _values(low: str, high: str, decimals: int) -> Alternatives:
    scale = 10**decimals
    first = round(float(low) * scale)
    last = round(float(high) * scale)
    step = max(1, (last - first) // MAX_VALUES)
    return tuple(
        Production(f"{value / scale:.{decimals}f}") for value in range(first, last + 1, step)
    )


def capitalised(alternatives: Alternatives) -> Alternatives:
    """Return the alternatives with capitalised beginnings."""
    return tuple(_capital(production) for production in alternatives)


def _capital(production: Production) -> Production:
    if production.head or not production.rest:
        return Production(production.head[:1].upper() + production.head[1:], production.rest)
    (slot, literal), *others = production.rest
    if isinstance(slot, tuple):
        first: str | Alternatives = capitalised(slot)
    else:
        first = slot if slot.startswith("^") else "^" + slot
    return Production("", ((first, literal), *others))


def with_capitals(rules: Mapping[str, Alternatives]) -> dict[str, Alternatives]:
    """Return the rules, each also capitalised under "^name"."""
    return {
        **rules,
        **{"^" + name: capitalised(alternatives) for name, alternatives in rules.items()},
    }


def expand(
    production: Production,
    vocabulary: Mapping[str, Entry],
    draw: Draw,
    pieces: list[str],
    marks: list[tuple[int, str]],
) -> None:
    """Append the text of a production to `pieces`, and (piece, label) of its PHI to `marks`;
    recursive.

    Types are tested in order of frequency; this loop takes most of the generator's time.
    """
    head, rest = production
    if head:
        pieces.append(head)
    for slot, literal in rest:
        entry = vocabulary[slot] if type(slot) is str else slot
        kind = type(entry)
        if kind is tuple:
            chosen = entry[int(draw() * len(entry))]  # type: ignore[arg-type,index]
            if chosen[1]:
                expand(chosen, vocabulary, draw, pieces, marks)  # type: ignore[arg-type]
            elif chosen[0]:
                pieces.append(chosen[0])
        elif kind is str:
            pieces.append(entry)  # type: ignore[arg-type]
        elif kind is Deck:
            deck: Deck = entry  # type: ignore[assignment]
            position = deck.position
            deck.position = position + 1
            alternatives = deck.capital if slot[0] == "^" else deck.plain
            expand(alternatives[position % len(alternatives)], vocabulary, draw, pieces, marks)
        else:
            phi: Phi = entry if kind is Phi else entry()  # type: ignore[assignment,operator]
            marks.append((len(pieces), phi.label))
            pieces.append(phi.text)
        if literal:
            pieces.append(literal)


def pick(items: Sequence[T], draw: Draw) -> T:
    """Return one of the items, each with the same probability."""
    return items[int(draw() * len(items))]


def phrase(rule: str, vocabulary: Mapping[str, Entry], draw: Draw) -> str:
    """Return the text of one rule, without its marks."""
    pieces: list[str] = []
    expand(Production("", ((rule, ""),)), vocabulary, draw, pieces, [])
    return "".join(pieces)
