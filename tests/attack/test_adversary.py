"""Adversaries: the table of findings, what does not apply, and every adversary on releases of known
strength.
"""

from dataclasses import replace

import numpy as np
import pytest
from test_adversary_suite import context

from clinveil.attacks import (
    GATED,
    LABELS,
    TARGETS,
    AdversarySuite,
    Context,
    Linkage,
    adversary_table,
    applicable,
    holding_of,
    not_applicable,
    target_of,
)
from clinveil.attacks.threats import HOLDINGS, tagged
from clinveil.channel import identity_channel
from clinveil.core import Finding
from clinveil.corpus import memory_corpus, rows
from clinveil.releases.attack_gates import adversary_gates
from clinveil.releases.gates import judged
from clinveil.report import Limits

READERS = {
    "shadow": ("own-vectors",),
    "pairs-20": ("known-pairs, 20 notes",),
    "pairs-200": ("known-pairs, 200 notes",),
    "stolen-vectors": ("bigram",),
}


def of(value, holding="recipient", target="names", chance=0.1, attack=""):
    return tagged(
        Finding("attack.reading.names", value, 100, chance=chance, attack=attack), holding, target
    )


def cells(findings):
    table = adversary_table(findings)
    return {(cell.holding, cell.target): row for cell, row in table.items()}


def test_a_cell_is_the_strongest_attack_above_chance():
    got = cells([of(0.2, attack="a"), of(0.3, attack="b"), of(0.35, attack="c", chance=0.3)])
    row = got["recipient", "names"]
    assert (row.finding.value, row.attack, row.gated) == (0.3, "b", True)


def test_a_stronger_adversary_can_run_the_attacks_of_a_weaker_one():
    got = cells(
        [
            of(0.3, "shadow", attack="own"),
            of(0.1, "pairs-20", attack="pairs"),
            of(0.2, "stolen-vectors"),
        ]
    )
    assert (got["pairs-20", "names"].finding.value, got["pairs-20", "names"].by) == (0.3, "shadow")
    assert got["stolen-vectors", "names"].finding.value == 0.3 and ("recipient", "names") not in got
    assert (
        cells([of(0.3, "pairs-20"), of(0.2, "stolen-vectors")])[
            "stolen-vectors", "names"
        ].finding.value
        == 0.2
    )


def test_the_table_is_sorted_by_adversary_and_target():
    made = [
        of(0.1, "stolen-vectors"),
        of(0.1, "recipient", "copies"),
        of(0.1, "recipient", "words"),
    ]
    table = adversary_table([*made, Finding("attack.inversion", 3.0, 5)])
    assert [cell.holding for cell in table] == sorted(
        (cell.holding for cell in table), key=HOLDINGS.index
    )
    assert [cell.target for cell in table if cell.holding == "recipient"] == ["words", "copies"]
    assert next(iter(table.values())).label == LABELS["recipient"]


def test_a_cell_without_a_value_says_why():
    row = cells(
        [tagged(Finding("attack.reading.names", None, 0, why="too few"), "pairs-20", "names")]
    )["pairs-20", "names"]
    assert row.finding.value is None and row.finding.why == "too few"


@pytest.mark.parametrize("kind", ["obfuscated", "deidentified", "synthetic"])
def test_what_does_not_apply_to_a_kind_gives_its_reason(kind):
    found = not_applicable(kind)
    assert all(f.why.startswith("does not apply, because") and not f.gated for f in found)
    targets = {target_of(f) for f in found}
    assert targets < set(TARGETS) and ("membership" in targets) == (kind != "synthetic")
    assert ("words" in targets) == (kind in ("deidentified", "synthetic"))


def attacked(case, **settings):
    return AdversarySuite(canaries=8, **settings)(case, np.random.default_rng(1))


def by_reader(found, kind):
    return {f.attack: f for f in found if f.measure == f"attack.reading.{kind}"}


@pytest.fixture(scope="module")
def corpus_code(tmp_path_factory):
    """A release in which every word has one replacement in all notes: a substitution cipher."""
    return context(tmp_path_factory.mktemp("code"), patients=140, k=1, length=30)


@pytest.fixture(scope="module")
def of_code(corpus_code):
    return attacked(corpus_code)


def test_every_adversary_attacks_every_release(of_code):
    held = {holding_of(f): set() for f in of_code if f.cell}
    for f in of_code:
        if f.cell:
            held[holding_of(f)].add(f.attack)
    assert held == {holding: set(readers) for holding, readers in READERS.items()}


@pytest.mark.parametrize("holding", READERS)
def test_every_adversary_recovers_unprotected_words(of_code, holding):
    controls = by_reader(of_code, "unprotected")
    assert max(controls[reader].value for reader in READERS[holding]) > 0.9


def gates_for(audience, findings):
    """The gates on attacks, with the limits of one audience."""
    rules = Limits.read().rules(audience)
    return judged(adversary_gates(findings, rules, "obfuscated"), rules)


def test_known_pairs_break_a_code_and_the_gate_refuses_it(of_code):
    got = by_reader(of_code, "all")
    assert got["known-pairs, 200 notes"].value > 0.9 > 0.2 > got["known-pairs, 200 notes"].control
    assert by_reader(of_code, "canaries")["known-pairs, 20 notes"].value > 0.9
    refused = {gate.risk for gate in gates_for("agreement", of_code) if not gate.passed}
    assert "planted_names" in refused


def test_gates_judge_recipients_with_up_to_twenty_pairs(of_code):
    judged = {holding_of(f) for f in of_code if f.gated}
    assert judged <= GATED and "pairs-20" in judged


def test_the_whole_release_is_before_the_attacker(of_code, corpus_code):
    words = sum(len(note.text.split()) for note in rows(corpus_code.released))
    assert {f.numbers["released_words"] for f in of_code if "released_words" in f.numbers} == {
        words
    }


def test_too_few_notes_for_the_pairs_are_reported_without_a_value(tmp_path):
    got = attacked(context(tmp_path, patients=12))
    short = [f for f in got if holding_of(f) == "pairs-200"]
    assert {target_of(f) for f in short} == {"names", "planted names", "words", "rare words"}
    assert all(f.value is None and "notes of other patients" in f.why for f in short)


def test_an_unprotected_release_is_recovered_by_all_and_refused(tmp_path):
    case = context(tmp_path, patients=60)
    same = identity_channel(case.channel.words)
    plain = memory_corpus(
        [(n.note_id, n.patient_id, n.text.replace(".", "")) for n in rows(case.entered)]
    )
    got = attacked(replace(case, channel=same, released=plain))
    assert by_reader(got, "names")["own-vectors"].value > 0.9
    measured = [gate for gate in gates_for("public", got) if gate.value is not None]
    assert len(measured) > 2 and not any(gate.passed for gate in measured)


def test_public_texts_link_what_they_describe(tmp_path):
    case = context(tmp_path, patients=40)
    texts = {}
    for note in rows(case.entered):
        texts[note.patient_id] = f"{texts.get(note.patient_id, '')} {note.text}"
    public = memory_corpus([(patient, patient, text) for patient, text in texts.items()])
    plain = replace(case, released=case.entered, channel=None)
    for known, low, high in ((public, 0.9, 1.0), (shuffled(public), 0.0, 0.15)):
        found = Linkage(fragment=0, own_vectors=False)(
            replace(plain, public=known), np.random.default_rng(0)
        )
        got = cells(found)["recipient", "note by public knowledge"]
        assert low <= got.finding.value <= high and got.gated
    without = Linkage(fragment=0, own_vectors=False)(
        Context(released=case.entered, original=case.entered), np.random.default_rng(0)
    )
    assert ("recipient", "note by public knowledge") not in cells(without)


def shuffled(corpus):
    notes = list(rows(corpus))
    order = np.random.default_rng(5).permutation(len(notes))
    return memory_corpus(
        [
            (n.note_id, n.patient_id, notes[i].text)
            for n, i in zip(notes, order.tolist(), strict=True)
        ]
    )


def test_targets_that_do_not_apply_to_a_kind_are_not_judged():
    one = tagged(Finding("attack.x", 0.5, 10), "recipient", "note by ten words")
    own = tagged(Finding("attack.y", 0.5, 10), "recipient", "own identifiers")
    words = tagged(Finding("attack.w", 0.5, 10), "recipient", "words")
    plain = Finding("utility.z", 0.5, 10)
    found = applicable([one, own, words, plain], "deidentified")
    assert [f.gated for f in found] == [True, True, False, False]
    assert found[2].cell is None


def test_a_target_that_does_not_apply_to_a_kind_has_no_figure_in_the_table():
    kept = tagged(
        Finding("attack.kept_columns_unique", 1.0, 10, numbers={"columns": 2}),
        "recipient",
        "kept columns",
    )
    for kind, value in (("synthetic", None), ("obfuscated", 1.0)):
        (found,) = applicable([kept], kind)
        cell = cells([found, *not_applicable(kind)]).get(("recipient", "kept columns"))
        assert (
            (cell.finding.value if cell else None) == value
            and found.value == 1.0
            and found.numbers["columns"] == 2
        )
