"""patients.parquet, codes.csv and lists of names: what is read, and how broken files are
refused.
"""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clinveil.core import InputError
from clinveil.corpus import (
    Patient,
    read_codes,
    read_names,
    read_patients,
    write_codes,
    write_patients,
)
from clinveil.scale import shared

ROSE = Patient(
    "p1", ("Rosé", "May", "O'Neill-Núñez"), ("401", "250"), ("4482913",), ("419-555-0101",),
    ("r@example.org",), ("12 Oak Street",), date(1950, 2, 28),
)  # fmt: skip
LI = Patient("p2", ("李", "伟"))


def table(path: Path, **columns) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_what_is_written_reads_back(tmp_path: Path):
    assert write_patients([ROSE, LI], tmp_path / "p.parquet") == 2
    assert read_patients(tmp_path / "p.parquet") == {"p1": ROSE, "p2": LI}


text = st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc", "Z")), min_size=1, max_size=8)
texts = st.lists(text, max_size=3).map(tuple)
some = st.builds(
    Patient, text, st.lists(text, min_size=1, max_size=4).map(tuple), texts, texts, texts, texts,
    texts,
    st.none() | st.dates(date(1850, 1, 1), date(2100, 1, 1)),
)  # fmt: skip


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(some, min_size=1, max_size=5, unique_by=lambda p: p.patient_id))
def test_any_patients_read_back(tmp_path: Path, patients: list[Patient]):
    write_patients(patients, tmp_path / "any.parquet")
    # Names are split at white space of any kind, so a token holds none.
    known = [p for p in patients if all(token.split() == [token] for token in p.name)]
    read = read_patients(tmp_path / "any.parquet")
    assert [p for p in read.values() if p in known] == known
    mapped = shared(read, tmp_path / "any")()
    assert list(mapped) == [p.patient_id for p in patients]
    assert (
        [mapped[p.patient_id] for p in patients]
        == mapped.take(np.arange(len(patients)))
        == list(read.values())
    )


def test_the_patients_of_a_saved_file_are_mapped_and_found_by_id(tmp_path: Path):
    people = {f"p{n}": Patient(f"p{n}", ("Ann", f"Lee{n}")) for n in range(9000)}
    write_patients(people.values(), tmp_path / "p.parquet")
    opened = shared(read_patients(tmp_path / "p.parquet"), tmp_path / "p")
    before = pa.total_allocated_bytes()
    mapped = opened()
    assert pa.total_allocated_bytes() - before < 1000  # the file is mapped, not read
    assert mapped == people and mapped["p8999"] == people["p8999"]
    assert "p9000" not in mapped and mapped.get("") is None


def test_many_patients_are_written_in_a_stream(tmp_path: Path):
    number = write_patients(
        (Patient(str(i), ("A", str(i))) for i in range(9000)), tmp_path / "p.parquet"
    )
    assert number == 9000
    assert pq.read_metadata(tmp_path / "p.parquet").num_row_groups == 3
    assert len(read_patients(tmp_path / "p.parquet")) == 9000


def test_repr_shows_counts_only():
    shown = repr(ROSE)
    assert (
        shown
        == "Patient(3 name tokens, 2 codes, 1 record_numbers, 1 phones, 1 emails, 1 addresses)"
    )


def test_only_three_columns_are_needed(tmp_path: Path):
    path = table(
        tmp_path / "p.parquet", patient_id=["a"], name=[" Ann  Lee "], codes=[["401", None, ""]]
    )
    assert read_patients(path) == {"a": Patient("a", ("Ann", "Lee"), ("401",))}


def test_other_types_of_the_same_meaning_are_taken(tmp_path: Path):
    path = table(
        tmp_path / "p.parquet",
        patient_id=pa.array([7, 8]),
        name=pa.array(["Ann Lee", "Bo Li"]).dictionary_encode(),
        codes=pa.array([["401"], None], type=pa.large_list(pa.large_string())),
        record_number=pa.array(["123", None]),
        phone=pa.array([[4195550101], []]),
        birth_date=pa.array([datetime(1950, 1, 2, 3), None]),
        extra=pa.array([1.5, 2.5]),
    )
    patients = read_patients(path)
    assert patients["7"] == Patient(
        "7", ("Ann", "Lee"), ("401",), ("123",), ("4195550101",), birth_date=date(1950, 1, 2)
    )
    assert patients["8"] == Patient("8", ("Bo", "Li"))


def test_birth_dates_may_be_text(tmp_path: Path):
    path = table(
        tmp_path / "p.parquet",
        patient_id=["a"],
        name=["A B"],
        codes=[["1"]],
        birth_date=["1950-01-02"],
    )
    assert read_patients(path)["a"].birth_date == date(1950, 1, 2)


GOOD = {"patient_id": ["a", "b"], "name": ["SecretAnn Lee", "Bo"], "codes": [["1"], ["2"]]}
BROKEN = [
    ({"patient_id": None}, "the column patient_id is missing"),
    ({"name": None}, "the column name is missing"),
    ({"patient_id": ["a", "a"]}, "row 2 repeats a patient_id"),
    ({"patient_id": ["a", None]}, "row 2 has no patient_id"),
    ({"patient_id": ["", "b"]}, "row 1 has no patient_id"),
    ({"patient_id": [1.5, 2.5]}, "the column patient_id is double, not text"),
    ({"name": ["SecretAnn", "  "]}, "row 2 has no name"),
    ({"name": ["SecretAnn", None]}, "row 2 has no name"),
    ({"name": [1, 2]}, "the column name is int64, not text"),
    ({"name": [["SecretAnn"], ["Bo"]]}, "not text"),
    ({"codes": [[1.5], [2.5]]}, "the column codes is a list of double, not of text"),
    ({"codes": [1.5, 2.5]}, "the column codes is double, not text"),
    ({"birth_date": ["1950-01-02", "secretday"]}, "the column birth_date does not contain dates"),
    ({"birth_date": [1, 2]}, "the column birth_date does not contain dates"),
]


@pytest.mark.parametrize(("change", "complaint"), BROKEN)
def test_broken_feeds_are_refused_in_one_line_without_values(
    change: dict, complaint: str, tmp_path: Path
):
    columns = {k: v for k, v in {**GOOD, **change}.items() if v is not None}
    with pytest.raises(InputError) as caught:
        read_patients(table(tmp_path / "feed.parquet", **columns))
    message = str(caught.value)
    assert complaint in message
    assert message.startswith("feed.parquet: ")
    assert "\n" not in message
    assert "ecret" not in message
    assert caught.value.exit_code == 3
    assert caught.value.__cause__ is None


def test_a_file_that_is_not_parquet(tmp_path: Path):
    (tmp_path / "feed.parquet").write_bytes(b"PAR1 secret")
    for path in (tmp_path / "feed.parquet", tmp_path / "missing.parquet"):
        with pytest.raises(InputError, match="not a Parquet or CSV file") as caught:
            read_patients(path)
        assert "secret" not in str(caught.value)


def test_a_csv_file_of_text(tmp_path: Path):
    path = tmp_path / "feed.csv"
    path.write_text(
        'patient_id,name,record_number,birth_date,ward\n007,"Rosé May",00123,1950-02-28,3\n8,李'
        " 伟,,,\n"
    )
    rose, li = read_patients(path).values()
    assert (rose.patient_id, rose.record_numbers, rose.birth_date) == (
        "007",
        ("00123",),
        date(1950, 2, 28),
    )
    assert (li.name, li.record_numbers, li.birth_date) == (("李", "伟"), (), None)
    for text, complaint in (
        ("", "not a Parquet or CSV"),
        ("a\nsecret\n", "patient_id is missing"),
        ("patient_id,name\n1\n", "not a"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=complaint) as caught:
            read_patients(path)
        assert "secret" not in str(caught.value)


def test_an_empty_feed_is_refused(tmp_path: Path):
    write_patients([], tmp_path / "p.parquet")
    with pytest.raises(InputError, match="contains no patients"):
        read_patients(tmp_path / "p.parquet")


def test_names_one_a_line(tmp_path: Path):
    path = tmp_path / "names.txt"
    path.write_text("\ufeffJosé  Núñez\r\n\n李 伟\nJosé Núñez\n", encoding="utf-8")
    assert read_names(path) == [("José", "Núñez"), ("李", "伟")]


def test_names_of_a_table_of_patients(tmp_path: Path):
    namesake = Patient("p9", ROSE.name)
    write_patients([ROSE, LI, namesake], tmp_path / "p.parquet")
    rows = "".join(f"{one.patient_id},{' '.join(one.name)},7\n" for one in (ROSE, LI, namesake))
    (tmp_path / "p.CSV").write_text(f"\ufeffpatient_id,name,ward\n{rows}", encoding="utf-8")
    for name in ("p.parquet", "p.CSV"):
        assert read_names(tmp_path / name) == [ROSE.name, LI.name, ROSE.name]


@pytest.mark.parametrize(
    ("name", "content", "problem", "advice"),
    [
        ("p.csv", "Zxanna Zxdale\nZxbob Zxelms\n", "column patient_id is missing", ".txt"),
        ("p.csv", "name\nZxanna Zxdale\n", "column patient_id is missing", ".txt"),
        ("p.csv", "patient_id;name\n1;Zxanna Zxdale\n", "column patient_id is missing", ".txt"),
        ("p.txt", "patient_id,name\n1,Zxanna Zxdale\n", "line 1 has columns", ".csv"),
        ("p.txt", "Zxbob Zxelms\nZxdale, Zxanna\n", "line 2 has columns", ".csv"),
        ("p.tsv", "patient_id\tname\n1\tZxanna Zxdale\n", "line 1 has columns", ".csv"),
    ],
)
def test_a_list_of_names_that_could_be_something_else_is_refused(
    tmp_path: Path, name, content, problem, advice
):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=problem) as refused:
        read_names(tmp_path / name)
    message = f"{refused.value} {refused.value.hint}"
    assert advice in message and "\n" not in message and "zx" not in message.lower()


@pytest.mark.parametrize("content", [b"", b"\n \n", "Jos\xe9".encode("cp1252")])
def test_bad_lists_of_names_are_refused(content: bytes, tmp_path: Path):
    (tmp_path / "names.txt").write_bytes(content)
    with pytest.raises(
        InputError, match=r"names\.txt: (contains no names|cannot be read as UTF-8)"
    ):
        read_names(tmp_path / "names.txt")


def test_codes_read_back_and_tolerate_order_and_more_columns(tmp_path: Path):
    codes = {"042": "AIDS", "599.0": 'a "quoted", infection'}
    write_codes(codes, tmp_path / "codes.csv")
    assert read_codes(tmp_path / "codes.csv") == codes
    (tmp_path / "more.csv").write_text(
        "\ufeffdescription,n,code\r\nAIDS,3,042\r\n", encoding="utf-8"
    )
    assert read_codes(tmp_path / "more.csv") == {"042": "AIDS"}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the columns code and description are missing"),
        (b"code,title\n1,x\n", "the columns code and description are missing"),
        (b"code,description\n1,secret\n1,other\n", "line 3 repeats a code"),
        (b"code,description\n1\n", "line 2 has no code or no description"),
        (b"code,description\n,secret\n", "line 2 has no code or no description"),
        (b"code,description\n1,secret\xe9\n", "cannot be read as CSV"),
        (b'code,description\n1,"secret\n', "cannot be read as CSV"),
    ],
)
def test_bad_codes_are_refused_without_values(content: bytes, complaint: str, tmp_path: Path):
    (tmp_path / "codes.csv").write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        read_codes(tmp_path / "codes.csv")
    assert "secret" not in str(caught.value)


def test_codes_may_be_missing(tmp_path):
    path = tmp_path / "feed.parquet"
    pq.write_table(pa.table({"patient_id": ["p"], "name": ["Ada Lovelace"]}), path)
    patient = read_patients(path)["p"]
    assert (patient.name, patient.codes) == (("Ada", "Lovelace"), ())
