"""Templates: what they compile to, how they expand, and that marks and capitals stay right."""

from __future__ import annotations

from itertools import accumulate, cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import InputError
from clinveil.corpus.demo.grammar import (
    Phi,
    compile_rule,
    compile_template,
    expand,
    phrase,
)


def draws(*numbers: float):
    return cycle(numbers).__next__


def say(template: str, vocabulary: dict, *numbers: float) -> str:
    pieces: list[str] = []
    expand(compile_template(template), vocabulary, draws(*(numbers or (0.0,))), pieces, [])
    return "".join(pieces)


@pytest.mark.parametrize("broken", ["{open", "{a{b}", "{Not A Slot}", "{}", "{a b}"])
def test_broken_templates_are_refused_without_their_text(broken: str):
    with pytest.raises(InputError) as caught:
        compile_template(broken)
    assert broken not in str(caught.value)


def test_phi_is_marked_where_it_stands():
    pieces: list[str] = []
    marks: list[tuple[int, str]] = []
    vocabulary = {"last": Phi("NAME", "Núñez"), "when": lambda: Phi("DATE", "5 May")}
    expand(compile_template("Mr. {last}'s visit on {when}"), vocabulary, draws(0.0), pieces, marks)
    offsets = list(accumulate(map(len, pieces), initial=0))
    text = "".join(pieces)
    assert text == "Mr. Núñez's visit on 5 May"
    assert [(text[offsets[p] : offsets[p + 1]], label) for p, label in marks] == [
        ("Núñez", "NAME"),
        ("5 May", "DATE"),
    ]


def test_weights_are_probabilities():
    rng = np.random.default_rng(5)
    vocabulary = {"r": compile_rule("3*often; seldom")}
    often = sum(phrase("r", vocabulary, rng.random) == "often" for _ in range(4000))
    assert abs(often / 4000 - 0.75) < 0.03


@given(st.lists(st.text(alphabet="abc ,.é漢", max_size=5), min_size=1, max_size=6))
def test_literal_choices_give_one_of_their_parts(parts: list[str]):
    template = "<{" + "|".join([*parts, "z"]) + "}>"
    assert say(template, {}, 0.4) in {f"<{part}>" for part in [*parts, "z"]}
