"""Names in forms that lists and cues miss: damaged letters, initials, and a bare family name in
mid-sentence.

Rules were written with the lines at even positions of each file in `forms/`; the others are held
out.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from marked import unmark

from clinveil.lexicons import LexicalClass, held_out, lexical_classes, surnames, world_surnames

FOLDER = Path(__file__).parent / "forms"
NAMES_PER_CONTEXT = 10


def measured(finder, name, half):
    """Identifiers found and marked, and spans outside the marks, in one half of a file."""
    found = marked = outside = 0
    for line in (FOLDER / f"{name}.txt").read_text().splitlines()[half::2]:
        text, gold = unmark(line.replace("\\n", "\n"))
        spans = finder.find(text)
        covered = {i for span in spans for i in range(span.start, span.end)}
        marked += len(gold)
        found += sum(
            {i for i in range(start, end) if text[i].isalnum()} <= covered for start, end, _ in gold
        )
        outside += sum(
            not any(s.start < end and start < s.end for start, end, _ in gold) for s in spans
        )
    return found, marked, outside


@pytest.mark.parametrize(("half", "least"), [(0, 13), (1, 13)])
def test_letter_spaced_and_misread_names(finder, half, least):
    found, marked, outside = measured(finder, "damaged", half)
    assert found >= least and marked < 15 and outside == 0


@pytest.mark.parametrize(("half", "least", "most"), [(0, 7, 0), (1, 13, 1)])
def test_initials(finder, half, least, most):
    found, _, outside = measured(finder, "initials", half)
    assert found >= least and outside <= most


def foreign(count, seed):
    """Held-out surnames of the locale lists that fewer than one American in 20,000 bears."""
    pool = sorted(
        form
        for form in world_surnames()
        if len(form) > 3
        and surnames().get(form, 0.0) < 0.005
        and held_out(form)
        and not lexical_classes(form) & LexicalClass.WORD
    )
    return [name.capitalize() for name in random.Random(seed).sample(pool, count)]


STARTS, MIDDLES, ENDS = map(
    str.split,
    (
        "b br ch d dr f g gr h j k kr l m n p r s sh st t th tr v w y z",
        "a ae ai e ee ei i ia io o oa oo ou u ua y",
        "ck d ff g k l ll m mb n nd ng nk p r rd rk rsk s sh sk t th tz v x z",
    ),
)


def unlisted(count, seed):
    below = random.Random(seed).randrange
    return [unlisted_name(lambda items: items[below(len(items))], below) for _ in range(count)]


def unlisted_name(choice, below):
    """A name of two or three syllables that is in no list of names or words."""
    while True:
        parts = [choice(STARTS) + choice(MIDDLES) for _ in range(1 + below(2))]
        name = "".join([*parts, choice(STARTS)[:1] + choice(MIDDLES)[:1] + choice(ENDS)])
        if not lexical_classes(name):
            return name.capitalize()


def share_of_bare_names(finder, half, names):
    contexts = (FOLDER / "bare_names.txt").read_text().splitlines()[half::2]
    found = 0
    for number, name in enumerate(names(NAMES_PER_CONTEXT * len(contexts), half)):
        text = contexts[number // NAMES_PER_CONTEXT].replace("{NAME}", name)
        start = text.index(name)
        covered = {i for span in finder.find(text) for i in range(span.start, span.end)}
        found += covered.issuperset(range(start, start + len(name)))
    return found / (NAMES_PER_CONTEXT * len(contexts))


@pytest.mark.parametrize(
    ("names", "half", "least"),
    [(foreign, 0, 0.95), (foreign, 1, 0.9), (unlisted, 0, 0.85), (unlisted, 1, 0.65)],
)
def test_bare_family_names(finder, names, half, least):
    assert share_of_bare_names(finder, half, names) >= least
