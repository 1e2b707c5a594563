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
    gated_only,
    not_applicable,
)
from clinveil.attacks.threats import HOLDINGS, tagged
from clinveil.channel import identity_channel
from clinveil.core import Finding
from clinveil.corpus import memory_corpus, rows
from clinveil.releases.attack_gates import adversary_gates
from clinveil.releases.producers.deidentified import SourcedProduct
from clinveil.stats import unmeasured

READERS = {
    "shadow": ("own-vectors",),
    "pairs-20": ("known-pairs, 20 notes",),
    "pairs-200": ("known-pairs, 200 notes",),
    "stolen-vectors": ("bigram",),
}


def of(value, holding="recipient", target="names", chance=0.1, **detail):
    return tagged(
        Finding("attack.reading.names", value, 100, chance=chance, detail=detail), holding, target
    )


def cells(findings):
    return {(row.adversary, row.target): row for row in adversary_table(findings)}


def test_a_cell_is_the_strongest_attack_above_chance():
    got = cells([of(0.2, reader="a"), of(0.3, reader="b"), of(0.35, reader="c", chance=0.3)])
    row = got["recipient", "names"]
    assert (row.value, row.attack, row.chance, row.n, row.gated) == (0.3, "b", 0.1, 100, True)


def test_a_stronger_adversary_can_run_the_attacks_of_a_weaker_one():
    got = cells(
        [
            of(0.3, "shadow", reader="own"),
            of(0.1, "pairs-20", reader="pairs"),
            of(0.2, "stolen-vectors"),
        ]
    )
    assert (got["pairs-20", "names"].value, got["pairs-20", "names"].by) == (0.3, "shadow")
    assert got["stolen-vectors", "names"].value == 0.3 and ("recipient", "names") not in got
    assert (
        cells([of(0.3, "pairs-20"), of(0.2, "stolen-vectors")])["stolen-vectors", "names"].value
        == 0.2
    )


def test_the_table_is_sorted_and_ends_with_the_stolen_vault():
    made = [
        of(0.1, "stolen-vectors"),
        of(0.1, "recipient", "copies"),
        of(0.1, "recipient", "words"),
    ]
    table = adversary_table([*made, Finding("attack.inversion", 3.0, 5)])
    assert [row.adversary for row in table] == sorted(
        (row.adversary for row in table), key=HOLDINGS.index
    )
    assert [row.target for row in table if row.adversary == "recipient"] == ["words", "copies"]
    assert (
        table[-1].adversary == "stolen-vault" and table[-1].value is None and "key" in table[-1].why
    )
    assert table[0].label == LABELS["recipient"]


def test_a_cell_without_a_value_says_why():
    row = cells([tagged(unmeasured("attack.reading.names", "too few"), "pairs-20", "names")])[
        "pairs-20", "names"
    ]
    assert row.value is None and row.why == "too few"


@pytest.mark.parametrize("kind", ["obfuscated", "deidentified", "synthetic"])
def test_what_does_not_apply_to_a_kind_gives_its_reason(kind):
    found = not_applicable(kind)
    assert all(
        str(f.detail["why"]).startswith("does not apply, because") and not f.detail["gated"]
        for f in found
    )
    targets = {f.detail["target"] for f in found}
    assert targets < set(TARGETS) and ("membership" in targets) == (kind != "synthetic")
    assert ("words" in targets) == (kind in ("deidentified", "synthetic"))


def attacked(case, **settings):
    return AdversarySuite(canaries=8, **settings)(case, np.random.default_rng(1))


def by_reader(found, kind):
    return {f.detail["reader"]: f for f in found if f.measure == f"attack.reading.{kind}"}


@pytest.fixture(scope="module")
def corpus_code(tmp_path_factory):
    """A release in which every word has one replacement in all notes: a substitution cipher."""
    return context(tmp_path_factory.mktemp("code"), patients=140, k=1, length=30)


@pytest.fixture(scope="module")
def of_code(corpus_code):
    return attacked(corpus_code)


def test_every_adversary_attacks_every_release(of_code):
    held = {f.detail["adversary"]: set() for f in of_code if "adversary" in f.detail}
    for f in of_code:
        if "adversary" in f.detail:
            held[f.detail["adversary"]].add(f.detail["reader"])
    assert held == {holding: set(readers) for holding, readers in READERS.items()}


@pytest.mark.parametrize("holding", READERS)
def test_every_adversary_recovers_unprotected_words(of_code, holding):
    controls = by_reader(of_code, "unprotected")
    assert max(controls[reader].value for reader in READERS[holding]) > 0.9


def test_known_pairs_break_a_code_and_the_gate_refuses_it(of_code):
    got = by_reader(of_code, "all")
    assert got["known-pairs, 200 notes"].value > 0.9 > 0.2 > got["known-pairs, 200 notes"].control
    assert by_reader(of_code, "canaries")["known-pairs, 20 notes"].value > 0.9
    refused = {gate.name for gate in adversary_gates(of_code, 0.05, 0.05) if not gate.passed}
    assert "planted names not recovered" in refused


def test_gates_judge_recipients_with_up_to_twenty_pairs(of_code):
    judged = {f.detail["adversary"] for f in of_code if f.detail.get("gated")}
    assert judged <= GATED and "pairs-20" in judged


def test_the_whole_release_is_before_the_attacker(of_code, corpus_code):
    words = sum(len(note.text.split()) for note in rows(corpus_code.released))
    assert {f.detail["released_words"] for f in of_code if "released_words" in f.detail} == {words}


def test_too_few_notes_for_the_pairs_are_reported_without_a_value(tmp_path):
    got = attacked(context(tmp_path, patients=12))
    short = [f for f in got if f.detail.get("adversary") == "pairs-200"]
    assert {f.detail["target"] for f in short} == {"names", "planted names", "words", "rare words"}
    assert all(f.value is None and "notes of other patients" in f.detail["why"] for f in short)


def test_an_unprotected_release_is_recovered_by_all_and_refused(tmp_path):
    case = context(tmp_path, patients=60)
    same = identity_channel(case.channel.words)
    plain = memory_corpus(
        [(n.note_id, n.patient_id, n.text.replace(".", "")) for n in rows(case.entered)]
    )
    got = attacked(replace(case, channel=same, released=plain))
    assert by_reader(got, "names")["own-vectors"].value > 0.9
    assert not any(gate.passed for gate in adversary_gates(got, 0.05, 0.05))


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
        assert low <= got.value <= high and got.gated
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


def test_targets_that_no_gate_of_a_kind_judges_are_not_marked():
    one = tagged(Finding("attack.x", 0.5, 10), "recipient", "note by ten words")
    own = tagged(Finding("attack.y", 0.5, 10), "recipient", "own identifiers")
    plain = Finding("utility.z", 0.5, 10)
    found = gated_only([one, own, plain], ("own identifiers",), "deidentified")
    assert [f.detail.get("gated") for f in found] == [False, True, None]
    assert SourcedProduct.judged == ("own identifiers",)


def test_a_target_that_does_not_apply_to_a_kind_has_no_figure_in_the_table():
    kept = tagged(
        Finding("attack.kept_columns_unique", 1.0, 10, detail={"columns": 2}),
        "recipient",
        "kept columns",
    )
    for kind, value in (("synthetic", None), ("obfuscated", 1.0)):
        (found,) = gated_only([kept], (), kind)
        cell = cells([found, *not_applicable(kind)]).get(("recipient", "kept columns"))
        assert cell.value == value and found.value == 1.0 and found.detail["columns"] == 2
