"""Columns of dates move with the notes of their patient; one that would stay unmoved is refused."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.core import InputError, Key, UsageError
from clinveil.corpus import Patient, read_patients
from clinveil.corpus.people import LARGEST_SHIFT, patients_batch
from clinveil.phi import DeidentifySettings, deidentify_notes
from clinveil.phi.treatment.columns import moved
from clinveil.phi.treatment.dates import offset
from clinveil.releases import ReleaseSettings, release

DAYS = [date(2019, 3, 4), None, date(2020, 12, 30)]
BY = [timedelta(5), timedelta(5), timedelta(-3)]


def notes(path, **columns):
    rows = {
        "note_id": ["n1", "n2", "n3"],
        "patient_id": ["a", "a", "b"],
        "text": ["Seen 3/4/2019."] * 3,
    }
    pq.write_table(pa.table(rows | columns), path)
    return path


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(DAYS, pa.date32()), [date(2019, 3, 9), None, date(2020, 12, 27)]),
        (pa.array(DAYS, pa.date64()), [date(2019, 3, 9), None, date(2020, 12, 27)]),
        (pa.array(["3/4/2019", "", "2020-12-30 10:20"]), ["3/9/2019", "", "2020-12-27 10:20"]),
        (pa.array(["3/4", None, "unknown"]), ["[DATE]", None, "[DATE]"]),
        (pa.array([20190304, None, 20201230]), [20190309, None, 20201227]),
    ],
)
def test_a_column_moves_in_its_own_type(values, expected):
    made = moved(values, BY, [False] * 3)
    assert made.type == values.type
    assert made.to_pylist() == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_day_stay(unit):
    values = pa.array([datetime(2019, 3, 4, 10, 20, tzinfo=UTC)], pa.timestamp("us", "UTC")).cast(
        pa.timestamp(unit, "UTC")
    )
    (made,) = moved(values, BY[:1], [False]).cast(pa.timestamp("us", "UTC")).to_pylist()
    assert made == datetime(2019, 3, 9, 10, 20, tzinfo=UTC)


def test_a_column_of_lists_is_no_column_of_dates():
    with pytest.raises(InputError, match="not dates"):
        moved(pa.array([[1]]), BY[:1], [False])


def run(tmp_path, path, keep=(), force=False, **identifiers):
    out = tmp_path / "out.parquet"
    how = DeidentifySettings.model_validate(
        {"quiet": True, "seed": 4, "keep_ids": True, "workers": 1}
        | {"keep": keep, "force": force, "identifiers": identifiers}
    )
    counts = deidentify_notes(path, out, how, say=lambda line: None)
    return pq.read_table(out).to_pylist(), counts


def test_named_columns_move_by_the_days_of_the_notes(tmp_path):
    path = notes(tmp_path / "n.parquet", seen=[date(2019, 3, 4)] * 3, ward=["x", "y", "z"])
    rows, _ = run(tmp_path, path, shift=("seen",), keep=("ward",))
    for row in rows:
        day = date(2019, 3, 4) + offset(Key.from_seed(4), row["patient_id"])
        assert row["seen"] == day
        assert row["text"] == f"Seen {day.month}/{day.day}/{day.year}."
    assert [row["ward"] for row in rows] == ["x", "y", "z"]


def test_the_offsets_of_the_patient_table_move_both(tmp_path):
    path = notes(tmp_path / "n.parquet", seen=["2019-03-04"] * 3)
    patients = tmp_path / "p.csv"
    patients.write_text("patient_id,name,date_shift\na,Ann Ito,10\nb,Bo Lund,-4\n")
    rows, _ = run(tmp_path, path, shift=("seen",), patients=patients)
    assert [(row["seen"], row["text"]) for row in rows] == [
        ("2019-03-14", "Seen 3/14/2019."),
        ("2019-03-14", "Seen 3/14/2019."),
        ("2019-02-28", "Seen 2/28/2019."),
    ]


def test_the_record_says_how_dates_were_read(tmp_path):
    path = notes(tmp_path / "n.parquet")
    _, counts = run(tmp_path, path)
    assert counts.date_orders == {"month first": 3}
    assert any("month first in 3" in line for line in counts.lines())
    record = json.loads((tmp_path / "out.parquet.vault" / "deidentify.json").read_text())
    assert record["notes_by_date_order"] == {"month first": 3}


KEPT = [
    pa.array([date(2019, 3, 4)] * 3),
    pa.array(["2019-03-04", "2019-03-05 10:20", None]),
    pa.array(["3/4/2019", "4 March 2019", "5/6/19"]),
    pa.array([datetime(2019, 3, 4)] * 3),
    pa.array([20190304] * 3),
]


@pytest.mark.parametrize("column", KEPT, ids=lambda column: str(column.type))
def test_a_date_column_that_would_stay_is_refused(tmp_path, column):
    path = notes(tmp_path / "n.parquet", seen=column)
    with pytest.raises(UsageError, match="'seen' has dates") as caught:
        run(tmp_path, path, keep=("seen",))
    assert "--shift seen" in caught.value.hint
    assert not (tmp_path / "out.parquet").exists()


def test_it_is_kept_where_no_date_is_shifted(tmp_path):
    path = notes(tmp_path / "n.parquet", seen=[date(2019, 3, 4)] * 3)
    rows, _ = run(tmp_path, path, keep=("seen",), phi_profile="safe-harbor")
    assert rows[0]["seen"] == date(2019, 3, 4)


@pytest.mark.parametrize("column", [["x", "y", "z"], [1, 2, 3], [1.5, 2.5, 3.5]])
def test_other_columns_are_kept_and_cannot_be_shifted(tmp_path, column):
    path = notes(tmp_path / "n.parquet", ward=column)
    assert [row["ward"] for row in run(tmp_path, path, keep=("ward",))[0]] == column
    with pytest.raises(UsageError, match="has no full dates"):
        run(tmp_path, path, shift=("ward",), force=True)


def test_a_policy_that_does_not_shift_dates_refuses_the_option(tmp_path):
    path = notes(tmp_path / "n.parquet", seen=[date(2019, 3, 4)] * 3)
    with pytest.raises(UsageError, match="does not shift dates"):
        run(tmp_path, path, shift=("seen",), mode="tag")


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"keep": ("seen",)}, "has dates"),
        ({"identifiers": {"shift": ("seen",)}, "phi": False}, "phi=false"),
    ],
)
def test_a_release_refuses_them_too(tmp_path, settings, what):
    path = notes(tmp_path / "n.parquet", seen=[date(2019, 3, 4)] * 3)
    how = ReleaseSettings.model_validate(
        {"kind": "deidentified", "quiet": True, "seed": 1, **settings}
    )
    with pytest.raises(UsageError, match=what):
        release(path, tmp_path / "out", how)


BAD = [
    ("a,Ann Ito,5\nb,Bo Lund,\n", "date_shift has gaps"),
    ("a,Ann Ito,5\na,Ann Ito,6\n", "row 2 repeats a patient_id"),
    ("a,Ann Ito,0\n", "row 1 has an invalid date_shift"),
    (f"a,Ann Ito,{LARGEST_SHIFT + 1}\n", "row 1 has an invalid date_shift"),
    ("a,Ann Ito,soon\n", "date_shift does not contain whole numbers"),
    ("a,Ann Ito,1.5\n", "date_shift does not contain whole numbers"),
]


@pytest.mark.parametrize(("rows", "what"), BAD)
def test_a_bad_offset_is_one_clear_line(tmp_path, rows, what):
    path = tmp_path / "p.csv"
    path.write_text("patient_id,name,date_shift\n" + rows)
    with pytest.raises(InputError, match=what):
        read_patients(path)


def test_offsets_survive_a_file_of_patients(tmp_path):
    batch = patients_batch([Patient("a", ("Ann", "Ito"), date_shift=-9)])
    pq.write_table(pa.Table.from_batches([batch]), tmp_path / "p.parquet")
    assert read_patients(tmp_path / "p.parquet")["a"].date_shift == -9
