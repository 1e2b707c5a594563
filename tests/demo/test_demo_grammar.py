"""Templates: what they compile to, how they expand, and that marks and capitals stay right."""

from __future__ import annotations

from itertools import accumulate, cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core.errors import InputError
from clinveil.corpus.demo.grammar import (
    MAX_VALUES,
    Deck,
    Phi,
    Production,
    capitalised,
    compile_rule,
    compile_template,
    expand,
    phrase,
    pick,
    with_capitals,
)


def draws(*numbers: float):
    return cycle(numbers).__next__


def say(template: str, vocabulary: dict, *numbers: float) -> str:
    pieces: list[str] = []
    expand(compile_template(template), vocabulary, draws(*(numbers or (0.0,))), pieces, [])
    return "".join(pieces)


def test_plain_text_compiles_to_itself():
    assert compile_template("no slots here.") == Production("no slots here.")


def test_slots_and_literals_alternate():
    assert compile_template("a {b} c {^d}{e}!") == Production(
        "a ", (("b", " c "), ("^d", ""), ("e", "!"))
    )


def test_weights_repeat_and_semicolons_part():
    assert compile_rule("2*one; two ;three") == tuple(
        map(Production, ["one", "one", "two", "three"])
    )


def test_lists_keep_space_and_semicolons():
    assert compile_rule([" a; b ", "2*x\ny"]) == tuple(map(Production, [" a; b ", "x\ny", "x\ny"]))


def test_an_integer_range_holds_both_ends():
    ((values, _),) = compile_template("{7-12}").rest
    assert [value.head for value in values] == ["7", "8", "9", "10", "11", "12"]


def test_a_decimal_range_keeps_its_decimals():
    ((values, _),) = compile_template("{0.8-1.2}").rest
    assert [value.head for value in values] == ["0.8", "0.9", "1.0", "1.1", "1.2"]


def test_a_wide_range_is_thinned():
    ((values, _),) = compile_template("{18000-420000}").rest
    numbers = [int(value.head) for value in values]
    assert numbers[0] == 18000
    assert numbers[-1] <= 420000
    assert len(numbers) <= MAX_VALUES + 1
    assert len(set(np.diff(numbers))) == 1


def test_choices_nest_and_may_be_empty():
    template = "{ with {a|b}|}!"
    assert say(template, {}, 0.0) == " with a!"
    assert say(template, {}, 0.0, 0.9) == " with b!"
    assert say(template, {}, 0.9) == "!"


@pytest.mark.parametrize("broken", ["{open", "{a{b}", "{Not A Slot}", "{}", "{a b}"])
def test_broken_templates_are_refused_without_their_text(broken: str):
    with pytest.raises(InputError) as caught:
        compile_template(broken)
    assert broken not in str(caught.value)


def test_rules_refer_to_rules():
    vocabulary = {"greet": compile_rule("hello {who}"), "who": compile_rule("you; world")}
    assert say("{greet}.", vocabulary, 0.0, 0.6) == "hello world."


def test_strings_are_said_and_not_marked():
    pieces: list[str] = []
    marks: list[tuple[int, str]] = []
    expand(compile_template("{he} came"), {"he": "she"}, draws(0.0), pieces, marks)
    assert ("".join(pieces), marks) == ("she came", [])


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


def test_a_deck_takes_turns_and_shares_them_with_its_capital():
    plain = compile_rule("one; two; three")
    deck = Deck(plain, capitalised(plain), 0)
    assert say("{n} {^n} {n} {n}", {"n": deck, "^n": deck}) == "one Two three one"


def test_capitals_go_through_slots_and_choices():
    rules = with_capitals(
        {"pain": compile_rule("{side} leg pain; {sore|aching} knee"), "side": compile_rule("left")}
    )
    assert say("{^pain}", rules, 0.0) == "Left leg pain"
    assert say("{^pain}", rules, 0.9, 0.9) == "Aching knee"


def test_capitals_leave_what_is_capital():
    assert capitalised(compile_rule("HTN; {^a} b")) == compile_rule("HTN; {^a} b")


def test_phrase_is_the_text_of_a_rule():
    assert (
        phrase("r", {"r": compile_rule("a {b}"), "b": Phi("NAME", "Will")}, draws(0.0)) == "a Will"
    )


def test_weights_are_probabilities():
    rng = np.random.default_rng(5)
    vocabulary = {"r": compile_rule("3*often; seldom")}
    often = sum(phrase("r", vocabulary, rng.random) == "often" for _ in range(4000))
    assert abs(often / 4000 - 0.75) < 0.03


def test_pick_reaches_first_and_last():
    assert pick("abc", lambda: 0.0) == "a"
    assert pick("abc", lambda: 1 - 2**-53) == "c"


@given(st.lists(st.text(alphabet="abc ,.é漢", max_size=5), min_size=1, max_size=6))
def test_literal_choices_give_one_of_their_parts(parts: list[str]):
    template = "<{" + "|".join([*parts, "z"]) + "}>"
    assert say(template, {}, 0.4) in {f"<{part}>" for part in [*parts, "z"]}


@given(st.text(alphabet=st.characters(exclude_characters="{}"), max_size=40))
def test_text_without_braces_comes_out_as_it_is(text: str):
    assert say(text, {}) == text
