"""Gates on what attacks found: each refuses a release that it must, passes one that it must, and knows its power."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.core.finding import Finding
from clinveil.corpus.corpus import Columns
from clinveil.releases.attack_gates import (
    contents_gate,
    effective,
    enough,
    linkage_gates,
    linkage_warnings,
    reading_gates,
    refused_from,
    single_gates,
)
from clinveil.stats.intervals import clopper_pearson

COLUMNS = Columns("text", "note_id", "patient_id", ("group",))


def read(k, n, *, stratum="names", reader="bigram", **more):
    low, high = clopper_pearson(k, n)
    detail = {"stratum": stratum, "reader": reader}
    return Finding(
        f"attack.reading.{stratum}", k / n, n, "lower", low, high, 0.05, unit="tokens", detail=detail, **more
    )


def linked(k, n, attacker="without the vectors", chance=1 / 300, known="10 words in a row"):
    low, high = clopper_pearson(k, n)
    detail = {"attacker": attacker, "against": known, "candidates": 300}
    return Finding("attack.linkage", k / n, n, "lower", low, high, chance, unit="notes", detail=detail)


def test_names_that_are_read_back_are_refused_and_others_pass():
    (gate,) = reading_gates([read(90, 300), read(3, 300, reader="blind"), read(299, 300, stratum="all")], 0.15)
    assert not gate.passed and gate.value == 0.3 and gate.threshold == 0.15
    assert "bigram" in gate.meaning and "2 attackers" in gate.meaning and "--max-names" in gate.remedy
    (gate,) = reading_gates([read(20, 300)], 0.15)
    assert gate.outcome == "passed" and "Refuses with 95" in gate.power
    assert [g.name for g in reading_gates([read(1, 300), read(1, 300, stratum="canaries")], 0.15)] == [
        "names not read back",
        "planted canaries not read back",
    ]


def test_who_takes_the_risk_has_no_such_gate():
    assert reading_gates([read(90, 300)], 1.0) == [] == single_gates([single(0.5)], 1.0)
    assert reading_gates([read(90, 300)], 0.5)[0].passed
    nothing = Finding("attack.reading.names", None, 0, detail={"why": "no name", "stratum": "names"})
    assert reading_gates([nothing], 0.15) == []


def test_with_few_cases_only_what_is_certain_is_refused():
    few = reading_gates([read(3, 12)], 0.15)[0]  # a quarter, and as well 5 %
    assert few.passed and few.outcome == "no power" and "Too few cases" in few.power
    assert not reading_gates([read(11, 12)], 0.15)[0].passed
    under = Finding("attack.reading.names", 0.0, 196, low=0.0, high=0.11, detail={"stratum": "names"})
    assert reading_gates([under], 0.15)[0].outcome == "passed"  # few, and enough: the whole interval lies below
    wide = Finding("attack.reading.names", 0.2, 400, low=0.01, high=0.6, detail={"stratum": "names"})  # of two patients
    assert reading_gates([wide], 0.15)[0].outcome == "no power"


def test_the_power_is_what_it_says():
    """Of releases at the share that is named, 95 % are refused; of those at half the threshold, at most 5 % are."""
    rng = np.random.default_rng(1)
    for n in (40, 300):
        assert n >= enough(0.15)
        least = refused_from(0.15, n)
        for share, refused in ((least, 0.95), (0.075, 0.05)):
            found = [not reading_gates([read(int(k), n)], 0.15)[0].passed for k in rng.binomial(n, share, 600)]
            assert np.mean(found) == pytest.approx(refused, abs=0.035) or (refused == 0.05 and np.mean(found) < 0.05)


@pytest.mark.parametrize(("k", "n"), [(0, 50), (50, 50), (20, 50), (30, 400)])
def test_the_width_of_an_interval_tells_the_cases(k, n):
    assert effective(read(k, n)) == pytest.approx(n, rel=0.15)
    assert effective(Finding("attack.reading.names", 0.2, 400)) == 400


def test_linkage_without_the_vectors_is_refused_beyond_five_points_above_chance():
    found = [linked(60, 300), linked(290, 300, "with the channel"), linked(1, 300, "own vectors")]
    (gate,) = linkage_gates(found, 0.05)
    assert not gate.passed and gate.value == 0.2 and "without the vectors" in gate.meaning
    assert not linkage_gates([linked(1, 300), linked(60, 300, "own vectors")], 0.05)[0].passed
    (gate,) = linkage_gates([linked(3, 300), linked(290, 300, "with the channel")], 0.05)
    assert gate.outcome == "passed" and gate.threshold == pytest.approx(1 / 300 + 0.05)
    assert linkage_gates([linked(290, 300, "with the channel")], 0.05) == [] == linkage_gates(found, 1)


def test_linkage_of_fifty_people_is_blind_unless_it_is_certain():
    assert linkage_gates([linked(5, 50, chance=1 / 50)], 0.05)[0].outcome == "no power"
    assert not linkage_gates([linked(25, 50, chance=1 / 50)], 0.05)[0].passed


def test_who_holds_more_of_a_person_is_no_gate_but_a_warning():
    found = [linked(266, 300, known="whole texts"), linked(3, 300, known="the patient's other notes")]
    assert linkage_gates(found, 0.05) == []
    (said,) = linkage_warnings(found, 0.05)
    assert "the whole text of a note" in said and "89%" in said
    (said,) = linkage_warnings([linked(9, 12, known="whole texts")], 0.05)
    assert "some of the notes" in said  # a small count is not told


def single(value, label="names"):
    return Finding("attack.channel_single", value, 900, "lower", unit="tokens", detail={"label": label})


def test_a_name_that_nothing_else_becomes_is_refused():
    assert not single_gates([single(0.001)], 0.15)[0].passed
    assert not single_gates([single(1e-6)], 0.15)[0].passed
    assert single_gates([single(0.0)], 0.15)[0].outcome == "passed"
    assert single_gates([single(0.4, "all words")], 0.15) == []


@pytest.fixture
def staging(tmp_path):
    names = ("note_id", "patient_id", "text", "group")
    pq.write_table(pa.table({name: ["a"] for name in names}), tmp_path / "notes.parquet")
    return tmp_path


def test_notes_alone_may_leave(staging):
    gate = contents_gate(staging, "notes.parquet", COLUMNS)
    assert gate.outcome == "by construction" and gate.value == 0


@pytest.mark.parametrize("name", ["matrix.npy", "vectors/words.arrow", "table.vec", "notes.parquet.bak", ".hidden"])
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
