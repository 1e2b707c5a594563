"""What goes in comes out: pandas, polars, Arrow, series and lists of strings, through the same
verbs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import clinveil
from clinveil.api import NoteRoles
from clinveil.api.frames import arrow
from clinveil.core import Finding, InputError, InputWarning, UsageError

NOTE = "Seen by Dr. Sarah Miller on 03/14/2021."
TAGGED = "Seen by Dr. [NAME] on [DATE]."


def deidentified(notes, mode="replace", *, patients=None, key=None, **columns):
    return clinveil.Deidentifier(mode, patients=patients, key=key, columns=columns).transform(notes)


def columns(n=3):
    rows = range(n)
    return {
        "note_id": [f"n{i}" for i in rows],
        "text": [NOTE] * n,
        "name": ["Miller"] * n,
        "label": [*rows],
    }


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("library", FRAMES)
def test_a_frame_comes_back_as_its_own_kind_and_unnamed_columns_do_not(library):
    frame = FRAMES[library](columns())
    made = deidentified(frame, mode="tag", label="label")
    assert type(made) is type(frame)
    assert arrow(made).to_pydict() == {
        "note_id": ["n0", "n1", "n2"],
        "text": [TAGGED] * 3,
        "label": [0, 1, 2],
    }


@pytest.mark.parametrize("series", [pd.Series, pl.Series, list, tuple])
def test_texts_alone_come_back_in_their_places(series):
    with pytest.warns(InputWarning, match="1 notes"):
        made = deidentified(series([NOTE, None, NOTE]), mode="tag")
    assert [None if pd.isna(text) else text for text in made] == [TAGGED, None, TAGGED]
    assert isinstance(made, list if series is tuple else series)


def test_an_arrow_column_too():
    made = deidentified(pa.chunked_array([[NOTE], [NOTE]]), mode="tag")
    assert made.to_pylist() == [TAGGED, TAGGED]


def test_pandas_keeps_its_row_labels_also_where_a_note_is_not_written():
    frame = pd.DataFrame({"note_id": [1, 2, 3], "text": [NOTE, None, NOTE]}, index=["a", "b", "c"])
    with pytest.warns(InputWarning):
        made = deidentified(frame, mode="tag")
    assert made.index.tolist() == ["a", "c"]
    assert deidentified(frame["text"].dropna(), mode="tag").index.tolist() == ["a", "c"]


def test_a_path_gives_an_arrow_table(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_text(f'note_id,text\n1,"{NOTE}"\n')
    assert deidentified(path, mode="tag").to_pydict() == {"note_id": ["1"], "text": [TAGGED]}


def test_pandas_categories_and_missing_values_are_read():
    frame = pd.DataFrame(
        {"note_id": [1.0, 2.0], "text": pd.Categorical([NOTE, NOTE]), "label": [np.nan, 1.0]}
    )
    got = NoteRoles.of({"keep": "label"}).opened(frame)[0]
    batch = pa.Table.from_batches(list(got.batches())).to_pydict()
    assert (batch["note_id"], batch["text"], batch["label"][1]) == (["1", "2"], [NOTE, NOTE], 1.0)
    assert deidentified(frame, mode="tag").index.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("notes", "error", "says"),
    [
        (7, UsageError, "type int"),
        ({"text": [NOTE]}, UsageError, "type dict"),
        ([NOTE, 7], InputError, "item 1 is a int"),
        (NOTE, InputError, "pass a single text as a list"),
        (pd.Series([1, 2]), InputError, "item 0 is a int"),
        (
            pd.DataFrame([[1, NOTE, NOTE]], columns=["note_id", "text", "text"]),
            InputError,
            "duplicate column name",
        ),
        ([], InputError, "no notes"),
        (pd.DataFrame({"note_id": [1, 1], "text": [NOTE, NOTE]}), InputError, "the frame"),
        (pd.DataFrame({"note_id": [1], "colour": [NOTE]}), InputError, "text"),
        (pd.DataFrame({0: [1], "text": [NOTE]}), InputError, "not a string"),
        (pd.DataFrame({"note_id": [1, 2], "text": [NOTE, 5]}), InputError, "several types"),
    ],
)
def test_what_does_not_fit_is_told_without_a_word_of_a_note(notes, error, says):
    with pytest.raises(error, match=says) as caught:
        deidentified(notes, mode="tag")
    assert "Sarah" not in str(caught.value)


def test_unknown_options_are_told():
    with pytest.raises(UsageError, match="no setting txt"):
        deidentified(pd.DataFrame(columns()), txt="text")
    with pytest.raises(UsageError, match="no setting epoch"):
        clinveil.embed([NOTE], epoch=3)


FINDINGS = [
    Finding(
        "attack.x",
        0.5,
        10,
        "lower",
        low=0.4,
        high=0.6,
        chance=0.1,
        count=5,
        numbers={"k": 3},
        labels=("a", "b"),
    ),
    Finding("utility.y", None, 0, why="no labels", numbers={"k": 2.5}),
]


@pytest.mark.parametrize("library", FRAMES)
def test_findings_become_a_frame(library):
    made = clinveil.to_frame(FINDINGS, library)
    assert type(made) is type(FRAMES[library]({"a": [1]}))
    rows = arrow(made).to_pylist()
    assert rows[0]["measure"] == "attack.x"
    assert (rows[0]["value"], rows[0]["n"], rows[0]["numbers_k"]) == (0.5, 10, 3.0)
    assert rows[0]["labels"] == "a, b" and rows[1]["why"] == "no labels"
    assert nw.from_native(clinveil.to_frame([], library), eager_only=True).shape[0] == 0


def test_the_library_of_a_frame_or_an_unknown_one():
    assert isinstance(clinveil.to_frame(FINDINGS, pl.DataFrame({"a": [1]})), pl.DataFrame)
    with pytest.raises(UsageError, match="duckdb"):
        clinveil.to_frame(FINDINGS, "duckdb")


def test_neither_library_is_needed():
    code = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("pandas", "polars", "torch"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import clinveil
assert clinveil.Deidentifier(mode="tag").transform(["Seen by Dr. Lee."]) == ["Seen by Dr. [NAME]."]
assert clinveil.to_frame([]).num_rows == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_known_patients_are_a_file_a_frame_or_patients(tmp_path):
    people = pd.DataFrame({"patient_id": ["p1"], "name": ["Zyra Quux"]})
    notes = pd.DataFrame({"note_id": [1], "patient_id": ["p1"], "text": ["Quux was seen."]})
    people.to_parquet(tmp_path / "people.parquet")
    known = {"p1": clinveil.Patient("p1", ("Zyra", "Quux"))}
    for patients in (people, tmp_path / "people.parquet", known):
        assert deidentified(notes, mode="tag", patients=patients)["text"].tolist() == [
            "[NAME] was seen."
        ]
    for wrong in (["Zyra Quux"], {"p1": {"name": "Zyra"}}, 7):
        with pytest.raises(UsageError, match="known patients cannot be"):
            deidentified(notes, patients=wrong)
    with pytest.raises(UsageError, match="a key cannot be of type int"):
        deidentified(notes, key=42)
    with pytest.raises(UsageError, match="names cannot be of type int"):
        clinveil.attack.names([], 7)
    with pytest.raises(UsageError, match="a name is not text"):
        clinveil.attack.names([], {"p1": {"name": "Zyra"}})
    with pytest.raises(
        UsageError, match=r"patients cannot be of type DataFrame \(write it to a file"
    ):
        clinveil.release(notes, tmp_path / "out", kind="deidentified", patients=people)
    assert not (tmp_path / "out").exists()


def test_names_are_read_from_a_frame_and_a_dictionary():
    vectors = clinveil.embed([NOTE] * 20, epochs=1, dim=4)
    people = pd.DataFrame({"patient_id": ["p1", "p2"], "name": ["Zyra Quux", "Dr Seen"]})
    spoken = {"p1": "Zyra Quux", "p2": "Dr Seen"}
    whole = [
        clinveil.attack.names(vectors, given) for given in (people, spoken, [*spoken.values()])
    ]
    assert [f.as_dict() for f in whole[0]] == [f.as_dict() for f in whole[1]]
    assert [f.value for f in whole[0]] == [f.value for f in whole[2]]


def test_rows_are_numbered_where_a_frame_has_no_ids():
    made = deidentified(pd.DataFrame({"text": [NOTE, NOTE]}), mode="tag")
    assert made["note_id"].tolist() == ["0", "1"] and made["text"].tolist() == [TAGGED, TAGGED]


def test_messages_name_settings_and_roles():
    with pytest.raises(UsageError, match=r"did you mean label\?"):
        clinveil.release([NOTE], "out", lable="x")
    with pytest.raises(InputError) as caught:
        deidentified(pd.DataFrame({"note_id": [1], "one": [NOTE], "two": [NOTE]}))
    assert 'in Python text="NAME"' in str(caught.value)


def test_paths_may_be_strings(tmp_path):
    (tmp_path / "notes.csv").write_text(f'note_id,text\n1,"{NOTE}"\n')
    assert clinveil.open_corpus(str(tmp_path / "notes.csv")).columns.text == "text"
    vectors = clinveil.embed([NOTE, NOTE], epochs=1, dim=4)
    clinveil.save_vectors(vectors, str(tmp_path / "v.vec"))
    assert clinveil.load_vectors(str(tmp_path / "v.vec")).words == vectors.words
    with pytest.raises(UsageError, match="not a list of findings"):
        clinveil.to_frame("out")
    assert clinveil.__version__


SECRET = "Zyra Quux was seen. "


@pytest.mark.parametrize("text", [SECRET, SECRET * 100, SECRET + "\0"])
@pytest.mark.parametrize(
    "use",
    [
        lambda text, out: deidentified(text),
        lambda text, out: clinveil.embed(text),
        lambda text, out: clinveil.Obfuscator().fit(text),
        lambda text, out: clinveil.release(text, out, kind="obfuscated"),
        lambda text, out: clinveil.release(text, out, kind="synthetic", lm={"model": "unigram"}),
        lambda text, out: deidentified([NOTE], patients=text),
        lambda text, out: clinveil.attack.names([], text),
        lambda text, out: clinveil.attack.linkage(text, text),
        lambda text, out: clinveil.evaluate.classification(text, text, label="label"),
    ],
)
def test_a_text_that_is_taken_for_a_path_is_not_said_back(text, use, tmp_path):
    with pytest.raises(InputError, match="file not found") as caught:
        use(text, tmp_path / "out")
    said = "".join(traceback.format_exception(caught.value))
    assert "Error: the" in said
    assert not {"Zyra", "Quux"} & set(re.findall(r"\w+", said))
    assert not list(tmp_path.iterdir())


def test_the_callers_umask_stays(tmp_path):
    before = os.umask(0o022)
    try:
        with pytest.raises(InputError):
            clinveil.release([NOTE] * 3, tmp_path / "out", kind="obfuscated")
        with pytest.raises(InputError):
            clinveil.release(
                [NOTE] * 3, tmp_path / "out", kind="synthetic", lm={"model": "unigram"}
            )
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    "notes",
    [[SECRET + "\ud800"], pd.DataFrame({"text": pd.Series([SECRET + "\ud800"], dtype=object)})],
)
def test_broken_unicode_is_told_without_the_text(notes):
    with pytest.raises(InputError, match="invalid Unicode") as caught:
        deidentified(notes)
    assert caught.value.__cause__ is None and "Zyra" not in repr(caught.value)


def test_nested_values_and_contexts_show_nothing():
    with pytest.raises(InputError, match="nested values") as caught:
        deidentified(pa.table({"note_id": ["1"], "text": [{"Zyra": 1}]}))
    assert "Zyra" not in str(caught.value)
    context = clinveil.attack.Context(
        names=[("Zyra", "Quux")], notes={"r": "Quux"}, known={"Quux": None}, codes={"Quux": ""}
    )
    assert not {"Zyra", "Quux"} & set(re.findall(r"\w+", repr(context)))
