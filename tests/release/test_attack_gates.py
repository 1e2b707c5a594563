"""Gates on what attacks found: each refuses a release that it must, passes one that it must, and
knows its power.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.attacks.threats import tagged
from clinveil.core import Finding
from clinveil.corpus import Columns
from clinveil.releases.attack_gates import (
    adversary_gates,
    contents_gate,
    effective,
    enough,
    kept_gates,
    linkage_gates,
    linkage_warnings,
    reading_gates,
    refused_from,
    single_gates,
    stolen_gates,
)
from clinveil.stats import clopper_pearson

COLUMNS = Columns("text", "note_id", "patient_id", ("group",))


def read(k, n, *, target="names", reader="own-vectors", holding="shadow", chance=0.0):
    low, high = clopper_pearson(k, n)
    one = Finding(
        "attack.reading.names",
        k / n,
        n,
        "lower",
        low,
        high,
        chance,
        unit="tokens",
        attack=reader,
    )
    return tagged(one, holding, target)


def linked(k, n, holding="recipient", chance=1 / 300, target="note by ten words"):
    low, high = clopper_pearson(k, n)
    one = Finding(
        "attack.linkage", k / n, n, "lower", low, high, chance, unit="notes", attack=holding
    )
    return tagged(one, holding, target)


def test_names_that_recipients_recover_are_refused_and_others_pass():
    weak = read(3, 300, holding="recipient")
    words = read(299, 300, target="words")
    (gate,) = reading_gates([read(90, 300), weak, words], 0.05)
    assert not gate.passed and gate.value == 0.3 and gate.threshold == 0.05
    assert (
        "own-vectors" in gate.meaning and "2 attacks" in gate.meaning and "max_names" in gate.hint
    )
    (gate,) = reading_gates([read(6, 300)], 0.05)
    assert gate.outcome == "passed" and "Refuses with 95" in gate.power
    names = [
        g.name for g in reading_gates([read(1, 300), read(1, 300, target="planted names")], 0.05)
    ]
    assert names == ["names not recovered", "planted names not recovered"]


@pytest.mark.parametrize(("holding", "judged"), [("pairs-20", True), ("pairs-200", False)])
def test_twenty_known_pairs_are_judged_and_two_hundred_are_not(holding, judged):
    gates = reading_gates([read(90, 300, holding=holding), read(1, 300)], 0.05)
    assert [gate.passed for gate in gates] == [not judged]


def test_what_chance_explains_is_no_breach():
    assert reading_gates([read(60, 300, chance=0.18)], 0.05)[0].passed
    assert not reading_gates([read(90, 300, chance=0.18)], 0.05)[0].passed


def test_an_attack_with_enough_cases_decides_over_a_stronger_one_without_power():
    strong = read(60, 300)
    few = read(4, 12, holding="pairs-20", reader="known-pairs")
    assert not reading_gates([strong, few], 0.05)[0].passed
    (gate,) = reading_gates([read(6, 300), read(1, 12, holding="pairs-20")], 0.05)
    assert gate.outcome == "passed" and gate.value == 0.02


def test_a_gate_at_one_is_listed_as_switched_off_with_its_value():
    (gate,) = reading_gates([read(90, 300)], 1.0)
    assert gate.outcome == "switched off" and gate.passed and gate.value == 0.3
    assert [gate.outcome for gate in linkage_gates([linked(60, 300)], 1)] == ["switched off"]
    assert single_gates([single(0.5)], 1.0) == []
    nothing = Finding("attack.reading.names", None, 0, why="no name")
    assert reading_gates([tagged(nothing, "shadow", "names")], 0.05) == []


def test_with_few_cases_only_what_is_certain_is_refused():
    few = reading_gates([read(3, 12)], 0.15)[0]  # a quarter, and 5 % as well
    assert few.passed and few.outcome == "no power" and "Too few cases" in few.power
    assert not reading_gates([read(11, 12)], 0.15)[0].passed
    under = Finding("attack.reading.names", 0.0, 196, low=0.0, high=0.11)
    assert (
        reading_gates([tagged(under, "shadow", "names")], 0.15)[0].outcome == "passed"
    )  # all of it is below
    wide = Finding("attack.reading.names", 0.2, 400, low=0.01, high=0.6)  # of two patients
    assert reading_gates([tagged(wide, "shadow", "names")], 0.15)[0].outcome == "no power"


def test_stolen_vectors_are_judged_on_request_alone():
    stolen = [
        read(90, 300, holding="stolen-vectors"),
        linked(200, 300, "stolen-vectors"),
        single(0.001),
    ]
    assert adversary_gates(stolen, 0.05, 0.05) == [] == stolen_gates(stolen, 1.0)
    gates = adversary_gates(stolen, 0.05, 0.05, 0.15)
    assert [gate.passed for gate in gates] == [False, False, False]
    assert all(gate.passed for gate in stolen_gates([read(9, 300, holding="stolen-vectors")], 0.15))


def test_the_power_is_what_it_says():
    """Of releases at the share that is named, 95 % are refused; of those at half the threshold, at
    most 5 % are.
    """
    rng = np.random.default_rng(1)
    for n in (40, 300):
        assert n >= enough(0.15)
        least = refused_from(0.15, n)
        for share, refused in ((least, 0.95), (0.075, 0.05)):
            found = [
                not reading_gates([read(int(k), n)], 0.15)[0].passed
                for k in rng.binomial(n, share, 600)
            ]
            assert np.mean(found) == pytest.approx(refused, abs=0.035) or (
                refused == 0.05 and np.mean(found) < 0.05
            )


def test_few_cases_far_above_zero_by_chance_alone_do_not_refuse():
    """Nine of 43 names where always naming the most frequent one scores six: an estimate above the
    limit by chance.
    """
    found = replace(read(9, 43), chance=6 / 43)
    assert reading_gates([found], 0.05)[0].outcome == "no power"
    assert not reading_gates([replace(read(35, 43), chance=6 / 43)], 0.05)[0].passed


@pytest.mark.parametrize(("k", "n"), [(0, 50), (50, 50), (20, 50), (30, 400)])
def test_the_width_of_an_interval_tells_the_cases(k, n):
    assert effective(read(k, n)) == pytest.approx(n, rel=0.15)
    assert effective(Finding("attack.reading.names", 0.2, 400)) == 400


def test_linkage_by_recipients_is_refused_beyond_five_points_above_chance():
    found = [linked(60, 300), linked(290, 300, "stolen-vectors"), linked(60, 300, "shadow")]
    gate, shadow = linkage_gates(found, 0.05)
    assert not gate.passed and gate.value == 0.2 and "10 words in a row" in gate.name
    assert (
        shadow.passed
        and shadow.threshold == pytest.approx(1 / 300 + 0.3)
        and "shadow vectors" in shadow.name
    )
    assert not linkage_gates([linked(1, 300), linked(150, 300, "shadow")], 0.05)[1].passed
    (gate,) = linkage_gates([linked(3, 300), linked(290, 300, "stolen-vectors")], 0.05)
    assert gate.outcome == "passed" and gate.threshold == pytest.approx(1 / 300 + 0.05)
    assert linkage_gates([linked(290, 300, "stolen-vectors")], 0.05) == []


def test_public_texts_are_judged_as_ten_words_are_and_other_notes_by_a_limit_of_their_own():
    public = linked(60, 300, target="note by public knowledge")
    notes = linked(190, 300, target="note by the patient's other notes")
    gates = linkage_gates([linked(3, 300), public, notes], 0.05)
    assert [gate.passed for gate in gates] == [True, False, True]
    assert gates[2].threshold == pytest.approx(1 / 300 + 0.75)
    plain = linked(280, 300, target="note by the patient's other notes")
    assert not linkage_gates([plain], 0.05)[0].passed


def test_linkage_of_fifty_people_is_blind_unless_it_is_certain():
    assert linkage_gates([linked(5, 50, chance=1 / 50)], 0.05)[0].outcome == "no power"
    assert not linkage_gates([linked(25, 50, chance=1 / 50)], 0.05)[0].passed


def whole(k, n):
    one = linked(k, n, target="note by its whole text")
    return tagged(one, "recipient", "note by its whole text", gated=False)


def test_linkage_by_the_whole_text_is_a_warning():
    found = [whole(266, 300), linked(3, 300, target="note by the patient's other notes")]
    assert [gate.threshold for gate in linkage_gates(found, 0.05)] == [
        pytest.approx(1 / 300 + 0.75)
    ]
    (said,) = linkage_warnings(found, 0.05)
    assert "the whole text of a note" in said and "89%" in said
    (said,) = linkage_warnings([whole(9, 12)], 0.05)
    assert "some of the notes" in said  # a small count is hidden


def single(value, label="names"):
    return Finding("attack.channel_single", value, 900, "lower", unit="tokens", labels=(label,))


def test_a_name_that_nothing_else_becomes_is_refused():
    assert not single_gates([single(0.001)], 0.15)[0].passed
    assert not single_gates([single(1e-6)], 0.15)[0].passed
    assert single_gates([single(0.0)], 0.15)[0].outcome == "passed"


@pytest.fixture
def staging(tmp_path):
    names = ("note_id", "patient_id", "text", "group")
    pq.write_table(pa.table({name: ["a"] for name in names}), tmp_path / "notes.parquet")
    return tmp_path


def test_notes_alone_may_leave(staging):
    gate = contents_gate(staging, "notes.parquet", COLUMNS)
    assert gate.outcome == "by construction" and gate.value == 0


@pytest.mark.parametrize(
    "name", ["matrix.npy", "vectors/words.arrow", "table.vec", "notes.parquet.bak", ".hidden"]
)
def test_any_other_file_is_refused(staging, name):
    (staging / name).parent.mkdir(exist_ok=True)
    (staging / name).write_bytes(b"x")
    gate = contents_gate(staging, "notes.parquet", COLUMNS)
    assert gate.outcome == "failed" and gate.value == 1


def test_a_table_of_vectors_among_the_columns_is_refused(staging):
    table = pq.read_table(staging / "notes.parquet").append_column("vector", pa.array([[0.1, 0.2]]))
    pq.write_table(table, staging / "notes.parquet")
    assert not contents_gate(staging, "notes.parquet", COLUMNS).passed


def test_arrays_under_the_name_of_a_note_are_refused(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("seen today")
    assert contents_gate(tmp_path, "notes", COLUMNS).passed
    with (tmp_path / "notes" / "b.txt").open("wb") as file:
        np.save(file, np.ones(3))
    (tmp_path / "notes" / "c.txt").symlink_to(tmp_path / "notes" / "a.txt")
    assert contents_gate(tmp_path, "notes", COLUMNS).value == 2


def test_unique_kept_values_are_refused_unless_accepted():
    def unique(count):
        return Finding(
            "attack.kept_columns_unique", count / 1000, 1000, "lower", unit="notes", count=count
        )

    assert [gate.passed for gate in kept_gates([unique(10)], 0.01)] == [True]
    (refused,) = kept_gates([unique(11)], 0.01)
    assert not refused.passed and "max_kept" in refused.hint
    (accepted,) = kept_gates([unique(1000)], 1)
    assert accepted.passed and accepted.switched_off
    own = Finding("attack.kept_own_identifiers", 0.001, 1000, "lower", unit="notes", count=1)
    assert [gate.passed for gate in kept_gates([own], 1)] == [False]
    assert kept_gates([], 0.01) == []
