"""ICD-9 labels of invented notes and diagnoses in MIMIC's layout, small enough to label by eye."""

from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from papers.jamia_2020.icd9 import LEAVES, Diagnoses, leaves
from papers.jamia_2020.prepare_icd9 import main
from papers.selection import as_text

from clinveil import InputError, open_corpus
from clinveil.utility import read_labelled

SECRET = "zyqquavex"
# hadm_id, subject_id, code: 100 and 106 have blood and heart, 101 a birth anomaly, 102 V and E
# only, 103 no code.
ROWS = [
    ("100", "1", "2859"), ("100", "1", "4280"), ("100", "1", "4019"), ("101", "2", "7455"), ("101",
        "2", "4019"),
    ("106", "6", "4019"), ("106", "6", "285.9"),
    ("102", "3", "V3001"), ("102", "3", "E8788"), ("103", "4", ""), ("104", "4", "nonsense"),
    ("105", "1", "0389"),
]  # fmt: skip
NOTES = [
    ("n1", "1", "100", "Discharge summary", f"{SECRET} was, as ever, pale\nand breathless"),
    ("n2", "1", "100", "Nursing", "slept well"),
    ("n3", "2", "101", "Discharge summary ", 'a murmur, "loud"'),
    ("n4", "3", "102", "Discharge summary", "born well"),
    ("n5", "4", "103", "Discharge summary", "no code"),
    ("n6", "5", "", "Discharge summary", "an outpatient"),
    ("n7", "6", "999", "Discharge summary", "unknown admission"),
    ("n8", "1", "105.0", "Discharge summary", ""),
    ("n9", "6", "106", "Radiology", "clear"),
]


@pytest.fixture
def mimic(tmp_path, monkeypatch):
    """NOTEEVENTS.csv and DIAGNOSES_ICD.csv.gz in the working folder."""
    monkeypatch.chdir(tmp_path)
    with gzip.open("DIAGNOSES_ICD.csv.gz", "wt", encoding="utf-8", newline="") as file:
        header = ["ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE"]
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        rows = [
            [i, int(patient), int(stay), 1, code] for i, (stay, patient, code) in enumerate(ROWS)
        ]
        writer.writerows([header, *rows])
    with open("NOTEEVENTS.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ROW_ID", "SUBJECT_ID", "HADM_ID", "CATEGORY", "ISERROR", "TEXT"])
        writer.writerows(
            [note, patient, stay, kind, "", text] for note, patient, stay, kind, text in NOTES
        )
    return tmp_path


def prepared(*flags, out="out.parquet"):
    assert main(["NOTEEVENTS.csv", "DIAGNOSES_ICD.csv.gz", "-o", out, *flags]) == 0
    return {row["ROW_ID"]: row["icd9"] for row in pq.read_table(out).to_pylist()}


BLOOD_AND_HEART = dict.fromkeys(("n1", "n2", "n9"), "280-289;390-459")
# 4019 has three patients, 2859 two, the others have one; V3001 and E8788 do not count.
LEAVES_OF_TWO = dict.fromkeys(("n1", "n2", "n9"), "4019;2859") | {"n3": "4019"}


@pytest.mark.parametrize(
    ("flags", "labels"),
    [
        (
            [],
            BLOOD_AND_HEART | {"n3": "390-459;740-759", "n4": "E000-E999;V01-V91", "n8": "001-139"},
        ),
        (
            ["--table", "published"],
            dict.fromkeys(("n1", "n2", "n9"), "290-319;390-459")
            | {"n3": "390-459;760-779", "n8": "001-139"},
        ),
        (["--labels", "leaf", "--top", "2"], LEAVES_OF_TWO),
    ],
)
def test_labels_of_notes(mimic, flags, labels):
    assert prepared(*flags) == labels


def test_what_is_left_out_is_counted(mimic, capsys):
    assert set(prepared("--only", "CATEGORY=Discharge summary")) == {"n1", "n3", "n4", "n8"}
    said = capsys.readouterr().err
    assert "4 notes with 6 labels" in said
    for line in (
        "not of the notes asked for: 2",
        "no admission: 1",
        "an admission without diagnoses: 2",
    ):
        assert f"not written, {line}" in said, said
    assert "diagnoses left out, no code: 1" in said
    assert "diagnoses left out, not an ICD-9-CM code: 1" in said
    assert SECRET not in said


def test_columns_are_the_notes_own_and_the_new_one(mimic):
    prepared()
    assert pq.read_table("out.parquet").column_names == ["ROW_ID", "SUBJECT_ID", "TEXT", "icd9"]
    flags = ["--keep", "HADM_ID", "--column", "codes", "--admission", "HADM_ID"]
    assert main(["NOTEEVENTS.csv", "DIAGNOSES_ICD.csv.gz", *flags, "-o", "kept.csv"]) == 0
    with open("kept.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["ROW_ID", "SUBJECT_ID", "HADM_ID", "TEXT", "codes"]
    assert rows[0]["TEXT"] == NOTES[0][4]
    assert rows[0]["HADM_ID"] == "100"


def test_what_is_written_is_read_as_several_labels(mimic):
    prepared()
    corpus = open_corpus(mimic / "out.parquet", label=("icd9",))
    read = read_labelled(
        corpus.batches(), "icd9", np.random.default_rng(0), min_class=2, separator=";"
    )
    assert read.multi
    assert read.classes == ("280-289", "390-459")
    assert dict(zip(read.note_ids, read.targets.tolist(), strict=True)) == {
        "n1": [True, True],
        "n2": [True, True],
        "n3": [False, True],
        "n9": [True, True],
    }


def test_mimic_4_says_the_version_of_each_code(tmp_path):
    path = tmp_path / "diagnoses_icd.jsonl"
    rows = [(7, 9, "4019"), (7, 10, "I10"), (8, 10, "J45"), (8, 9, "038.9")]
    lines = [
        json.dumps({"subject_id": 1, "hadm_id": h, "icd_code": c, "icd_version": v})
        for h, v, c in rows
    ]
    path.write_text("\n".join(lines))
    diagnoses = Diagnoses(path)
    assert diagnoses.by_admission(leaves()) == {
        "7": 1 << LEAVES.index("4019"),
        "8": 1 << LEAVES.index("0389"),
    }
    assert diagnoses.skipped == {"a code of another version than 9": 2}


def test_ids_that_were_read_as_floats_join(tmp_path):
    path = tmp_path / "d.parquet"
    columns = {"HADM_ID": [100.0, None], "SUBJECT_ID": [1, 2], "ICD9_CODE": ["4019", "4019"]}
    pq.write_table(pa.table(columns), path)
    diagnoses = Diagnoses(path)
    assert [(row.admission, row.patient, row.code) for row in diagnoses.rows()] == [
        ("100", "1", "4019")
    ]
    assert diagnoses.skipped == {"no admission or no patient": 1}


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pa.array([1, None]), ["1", None]),
        (pa.array(["7.0", " 8 ", ""]), ["7", "8", None]),
        (pa.array(["A1.0", "1.50"]), ["A1.0", "1.50"]),
        (pa.array(["x"]).dictionary_encode(), ["x"]),
    ],
)
def test_ids_as_text(values, text):
    assert as_text(values) == text


def refused(arguments, capsys, code=3):
    assert main([*arguments, "-o", "out.parquet"]) == code
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert SECRET not in said
    return said


def test_another_source_says_so(mimic, capsys):
    rows = [f"{i},9,{i + 5000},1,4019" for i in range(3)]
    (mimic / "other.csv").write_text(
        "\n".join(["ROW_ID,SUBJECT_ID,HADM_ID,SEQ_NUM,ICD9_CODE", *rows])
    )
    said = refused(["NOTEEVENTS.csv", "other.csv"], capsys)
    assert "an admission without diagnoses: 8" in said
    assert not (mimic / "out.parquet").exists()


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("d.csv", "HADM_ID,SUBJECT_ID\n1,1\n", "one of the columns"),
        ("d.csv", "HADM_ID,hadm_id,SUBJECT_ID,ICD9_CODE\n1,1,1,4019\n", "one of the columns"),
        ("d.csv", f"HADM_ID,SUBJECT_ID,ICD9_CODE\n1,1,{SECRET}\n", "no row has an admission"),
        ("d.csv", f"HADM_ID,SUBJECT_ID,ICD9_CODE\n1,1,4019,{SECRET}\n", "row 1"),
        ("d.jsonl", '{"HADM_ID": 1, "SUBJECT_ID": 1, "ICD9_CODE": 4019}\n', "not text"),
        ("d.txt", "4019", "unknown file type"),
    ],
)
def test_a_table_that_does_not_fit(mimic, capsys, name, content, what):
    (mimic / name).write_text(content)
    assert what in refused(["NOTEEVENTS.csv", name], capsys)


def test_codes_as_numbers_have_lost_their_zeros(mimic, capsys):
    pq.write_table(
        pa.table({"HADM_ID": [100], "SUBJECT_ID": [1], "ICD9_CODE": [389]}), mimic / "d.parquet"
    )
    assert "0389 is not 389" in refused(["NOTEEVENTS.csv", "d.parquet"], capsys)


def test_too_few_codes_for_leaves(mimic, capsys):
    (mimic / "d.csv").write_text("HADM_ID,SUBJECT_ID,ICD9_CODE\n100,1,4019\n100,1,V3001\n")
    assert "at least 2 are needed" in refused(
        ["NOTEEVENTS.csv", "d.csv", "--labels", "leaf"], capsys
    )


def test_notes_without_an_admission_column(mimic, capsys):
    (mimic / "plain.csv").write_text(f"note_id,text\n1,{SECRET}\n")
    assert "--admission COLUMN" in refused(["plain.csv", "DIAGNOSES_ICD.csv.gz"], capsys)
    with pytest.raises(InputError, match="lists"):
        as_text(pa.array([["1"]]))


@pytest.mark.parametrize(
    "flags",
    [
        ["--only", "CATEGORY"],
        ["--only", "CATEGORY="],
        ["--only", "=Report"],
        ["--only", "CATEGORY=a", "--only", "CATEGORY=b"],
        ["--column", "TEXT"],
        ["--column", "patient_id"],
        ["--labels", "leaf", "--table", "published", "--top", "10"],
    ],
)
def test_flags_that_make_no_sense(mimic, capsys, flags):
    refused(["NOTEEVENTS.csv", "DIAGNOSES_ICD.csv.gz", *flags], capsys, code=2)


def test_an_existing_result_is_kept(mimic, capsys):
    prepared()
    capsys.readouterr()
    refused(["NOTEEVENTS.csv", "DIAGNOSES_ICD.csv.gz"], capsys, code=2)
    assert len(pq.read_table("out.parquet")) == 6
