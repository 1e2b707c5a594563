"""The shape of an attack: all of ours have it, and a release runs them in one order."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from clinveil.attacks import Attack, Context, attacks, of_release
from clinveil.core import Finding, UsageError
from clinveil.corpus import memory_corpus, rows
from clinveil.releases.measured import AttackSample, attacked, skipped
from clinveil.report.measures import find


def test_a_context_knows_what_is_at_hand():
    context = Context(known={}, names=[], notes={"1": "a"})
    assert context.has(frozenset({"notes"})) and context.has(frozenset())
    for empty in ("known", "names", "channel"):
        assert not context.has(frozenset({"notes", empty}))
    with pytest.raises(ValueError, match="Context has no field weather"):
        context.has(frozenset({"weather"}))


@pytest.mark.parametrize("name", sorted(attacks.paths))
def test_every_attack_has_help_needs_and_words(name):
    attack = attacks.get(name)
    assert issubclass(attack, Attack) and attack.help().endswith((".", ")."))
    assert attack.needs and not Context().has(attack.needs)
    assert attack.words and all(measure.startswith("attack.") for measure in attack.words)
    assert all(find(measure)[1] == text for measure, text in attack.words.items())
    assert all(field.description for field in [one.field for one in attack.declared().values()])


def test_an_unknown_attack_is_a_users_mistake():
    with pytest.raises(UsageError, match="unknown attack 'nonsense'"):
        attacks.get("nonsense")


def test_an_attack_without_a_body_is_none():
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (Attack,), {})()


def test_a_release_is_measured_in_the_order_of_the_report():
    ours = [name for name, attack in attacks if attack in of_release()]
    in_order = sorted(ours, key=lambda name: attacks.get(name).order)
    known = ["inversion", "adversary-suite", "linkage", "identifiers", "uniqueness"]
    assert [name for name in in_order if name in known] == known


def test_a_release_keeps_the_numbers_only_of_an_attack_that_is_not_ours():
    @attacks.register("loud")
    class Loud(Attack):
        """Tells what it has read."""

        needs = frozenset({"released"})
        on_release = True
        words: ClassVar = {"attack.loud": find("attack.linkage")[1]}
        measure: str = "attack.loud"

        def __call__(self, context, rng):
            text = next(note.text for note in rows(context.released))
            told = dict.fromkeys(
                ("unit", "method", "question", "p_is", "chance_is", "control_is", "source"), text
            )
            return [
                Finding(
                    self.measure,
                    0.5,
                    2,
                    "lower",
                    chance=0.1,
                    labels=(text,),
                    numbers={text: 1},
                    **told,
                )
            ]

    context = Context(released=memory_corpus([("1", "x", "Zyra Quux")]))
    try:
        found = next(
            f
            for f in attacked(AttackSample(context, context), np.random.default_rng(0))
            if f.measure == "attack.loud"
        )
        assert (found.value, found.n, found.chance) == (0.5, 2, 0.1)
        assert "Zyra" not in str(found.as_dict())
        Loud.model_fields["measure"].default = "attack.Zyra"
        Loud.model_rebuild(force=True)
        with pytest.raises(ValueError, match="listed in its `words`") as caught:
            attacked(AttackSample(context, context), np.random.default_rng(0))
        assert "Zyra" not in str(caught.value)
    finally:
        attacks.forget("loud")


@pytest.mark.parametrize(
    ("kind", "listed"), [("synthetic", True), ("synthetic", False), ("deidentified", False)]
)
def test_attacks_that_were_not_run_have_a_plain_reason(kind, listed):
    notes = memory_corpus([("n1", "p1", "one two")])
    source = {} if kind == "synthetic" else {"original": notes, "entered": notes}
    lines = skipped(Context(released=notes, **source), kind, listed)
    assert not any(
        ": no channel" in line or ": no original" in line or " and no " in line for line in lines
    )
    assert any(
        "does not apply, because words are not replaced one by one" in line for line in lines
    )
    own = next(line for line in lines if "own identifiers" in line)
    assert ("no known-patient list was given" in own) == (not listed)
    assert ("see the gate on known names" in own) == listed
