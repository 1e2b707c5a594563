"""Which column plays which role, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import InputError, NotesSettings
from clinveil.corpus import ENTERED_IN_ERROR, USUAL, Columns, open_corpus, rows
from clinveil.corpus.columns import candidates, name_the_column, resolve

MIMIC3 = [
    "ROW_ID", "SUBJECT_ID", "HADM_ID", "CHARTDATE", "CHARTTIME", "STORETIME", "CATEGORY",
    "DESCRIPTION", "CGID", "ISERROR", "TEXT",
]  # fmt: skip
MIMIC4 = [
    "note_id",
    "subject_id",
    "hadm_id",
    "note_type",
    "note_seq",
    "charttime",
    "storetime",
    "text",
]
OMOP = [
    "note_id",
    "person_id",
    "note_date",
    "note_type_concept_id",
    "note_class_concept_id",
    "note_title",
    "note_text",
]
NOTE_NLP = [
    "note_nlp_id",
    "note_id",
    "section_concept_id",
    "snippet",
    "offset",
    "lexical_variant",
    "nlp_system",
]


def columns(names: list[str], **options: object) -> Columns:
    kept = {name: options.pop(name) for name in ("label", "keep") if name in options}
    return resolve(names, NotesSettings.model_validate(options), "f.csv", **kept).columns


def refused(names: list[str], **options: object) -> str:
    with pytest.raises(InputError) as caught:
        columns(names, **options)
    assert caught.value.exit_code == 3
    return str(caught.value)


def test_usual_names_are_guessed_and_said() -> None:
    found = resolve(["Doc ID", "Note_Text", "Patient-Id", "ward"], NotesSettings(), "f.csv")
    assert found.columns == Columns(
        "Note_Text",
        "Doc ID",
        "Patient-Id",
        dropped=("ward",),
        order=("Doc ID", "Note_Text", "Patient-Id"),
    )
    assert found.guessed == ("text", "id", "patient")
    assert found.preset is None


def test_what_is_told_wins_over_what_could_be_guessed() -> None:
    found = resolve(["id", "note", "text"], NotesSettings(text="note"), "f.csv")
    assert found.columns.text == "note"
    assert found.guessed == ("id",)
    assert found.columns.dropped == ("text",)


def test_without_a_patient_column_each_note_is_its_own_patient() -> None:
    assert not columns(["id", "text"]).has_patients
    assert columns(["id", "text", "subject_id"]).has_patients


@pytest.mark.parametrize(
    ("names", "role", "shown"),
    [
        (["id", "note", "text"], "text", "note, text"),
        (["id", "doc_id", "text"], "id", "id, doc_id"),
        (["id", "text", "patient_id", "person_id"], "patient", "patient_id, person_id"),
        (["id", "text", "TEXT"], "text", "text, TEXT"),
    ],
)
def test_ambiguity_is_refused_with_the_names_and_the_flag(
    names: list[str], role: str, shown: str
) -> None:
    message = refused(names)
    assert message.startswith("f.csv: 2 columns could be the ")
    assert shown in message
    assert f"--{role}" in message


ID_TEXT = ["id", "text"]
ROLES = {"text": "body", "id": "key", "patient": "who"}
RESERVED = "this name is reserved for a column role"
# The columns of a file, the settings, and what the refusal contains.
REFUSED: list[tuple[list[str], dict[str, object], str]] = [
    (
        ["id", "age"],
        {},
        'f.csv: cannot tell which column is the text (pass --text NAME, in Python text="NAME";'
        " columns: id, age)",
    ),
    (["key", "text"], {}, 'in Python id="NAME"; columns: key, text'),
    *(
        (ID_TEXT, {role: "x"}, f"no column 'x' ({name_the_column(role)}; columns: id, text)")
        for role in ("text", "id", "patient")
    ),
    *((ID_TEXT, {flag: ("x",)}, f"{name_the_column(flag)}; columns") for flag in ("keep", "label")),
    (ID_TEXT, {"text": "TEXT"}, "no column 'TEXT'"),
    (ID_TEXT, {"text": "text", "id": "text"}, "two roles"),
    (ID_TEXT, {"patient": "id", "id": "id"}, "two roles"),
    *(
        (["key", "who", "body", name], {**ROLES, flag: (name,)}, f"--{flag} {name}: {RESERVED}")
        for flag in ("keep", "label")
        for name in ("note_id", "patient_id", "text")
    ),
    (ID_TEXT, {"keep": ("text",)}, "already"),
    (ID_TEXT, {"label": ("id",)}, "already"),
    *(
        (NOTE_NLP, {"preset": preset, "text": "snippet", "id": "note_nlp_id"}, "NOTE_NLP")
        for preset in ("auto", "none", "omop")
    ),
    (
        ["note_id", "text"],
        {"preset": "omop"},
        "no column note_text, person_id for preset=omop",
    ),
    (["row_id", "subject_id", "text"], {"preset": "mimic3"}, "iserror"),
]


@pytest.mark.parametrize(("names", "options", "message"), REFUSED)
def test_roles_that_do_not_fit_are_refused(
    names: list[str], options: dict[str, object], message: str
) -> None:
    assert message in refused(names, **options)


def test_a_told_column_is_not_guessed_for_another_role() -> None:
    assert columns(["id", "report_id", "text"], patient="id").note_id == "report_id"


def test_labels_are_kept_too_in_source_order() -> None:
    found = columns(["a", "id", "b", "text", "c"], label=("c", "c"), keep=("a", "c"))
    assert found.keep == ("a", "c")
    assert found.labels == ("c",)
    assert found.dropped == ("b",)
    assert found.order == ("a", "id", "text", "c")


LOOK = "other names are hidden, as they may be data: look at the file's first row"


@pytest.mark.parametrize(
    "first",
    [
        ["N1", "Quorbina", "Coughing badly"],
        ["17", "quorbina"],
        ["a1", "quorbina came in with pain in the left arm"],
        ["Quorbina SECRET"],
        ["a", "q\nquorbina"],
    ],
)
def test_a_file_without_header_shows_nothing_of_itself(first: list[str]) -> None:
    """What stands where names should be may be a note and a name, and a short one looks like a
    column's.
    """
    columns = "1 of another name (column 1)"
    if len(first) > 1:
        columns = (
            f"{len(first)} of other names (column"
            f" {', '.join(str(i + 1) for i in range(len(first)))})"
        )
    assert candidates(first) == f"{columns}; {LOOK}"
    assert refused(first) == (
        'f.csv: cannot tell which column is the text (pass --text NAME, in Python text="NAME";'
        f" {columns}; {LOOK})"
    )
    for flag in ("text", "id", "patient"):
        assert (
            refused(first, **{flag: "x"})
            == f"f.csv: no column 'x' ({name_the_column(flag)}; {columns}; {LOOK})"
        )
    for flag in ("keep", "label"):
        message = refused([*first, "id", "text"], **{flag: ("x",)})
        assert (
            message == f"f.csv: no column 'x' ({name_the_column(flag)}; columns: id, text and"
            f" {columns}; {LOOK})"
        )


def test_usual_names_are_shown_and_others_counted() -> None:
    assert candidates(["id", "Quorbina"]) == f"columns: id and 1 of another name (column 2); {LOOK}"
    listed = candidates(["ID", "a", "HADM_ID", "b", "c"])
    assert listed == f"columns: ID, HADM_ID and 3 of other names (column 2, 4, 5); {LOOK}"
    assert candidates(["note-id", "Sample Name"]) == "columns: note-id, Sample Name"
    assert candidates([]) == ""


def test_all_names_of_known_sources_and_of_guesses_are_usual() -> None:
    guessed = [name for names in USUAL.values() for name in names]
    for names in (MIMIC3, MIMIC4, OMOP, guessed):
        assert LOOK not in candidates(names)


def test_names_that_the_user_said_are_said_back() -> None:
    message = refused(["Quorbina", "verdict", "id"], keep=("verdict",))
    assert f"columns: verdict, id and 1 of another name (column 1); {LOOK}" in message
    message = refused(["verdict", "tale", "id"], text="tale", label=("verdict",), patient="gone")
    assert "no column 'gone' (pass --patient NAME, in Python" in message
    assert "columns: verdict, tale, id)" in message
    assert "verdict" not in refused(["verdict", "id"], keep=("verdic",))


def test_a_record_number_is_the_patient_where_no_column_is_named_after_the_patient() -> None:
    assert columns(["id", "text", "MRN"]).patient_id == "MRN"
    assert columns(["id", "text", "mrn", "patient_id"]).patient_id == "patient_id"
    assert not columns(["id", "text", "name"]).has_patients


def test_many_columns_are_not_all_shown() -> None:
    usual = [f"label{'_' * i}" for i in range(20)]
    assert candidates(usual).endswith(f"{usual[11]} and 8 more")
    assert candidates([*usual, "x"]).endswith(
        f" and 8 more and 1 of another name (column 21); {LOOK}"
    )
    assert "(column 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, …)" in candidates(
        [f"x{i}" for i in range(20)]
    )


@given(st.lists(st.text(min_size=1, max_size=20), unique=True, max_size=8))
def test_no_name_but_a_usual_one_is_shown(names: list[str]) -> None:
    shown = candidates([f"Quorbina{name}" for name in names])
    assert "Quorbina" not in shown
    assert shown == "" or shown.startswith(str(len(names)))


def test_names_that_may_be_data_are_counted_not_listed() -> None:
    names = ["id", "text", "ward", "Quorbina", "verdict"]
    found = resolve(
        names, NotesSettings(), "f.jsonl", keep=("verdict",), optional_keys={"Quorbina", "verdict"}
    ).columns
    assert (found.keep, found.dropped, found.other_dropped) == (("verdict",), ("ward",), 1)
    assert columns(names).other_dropped == 0


# --- presets
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
@pytest.mark.parametrize(
    ("names", "preset", "roles"),
    [
        (MIMIC3, "mimic3", ("TEXT", "ROW_ID", "SUBJECT_ID")),
        (MIMIC4, "mimic4", ("text", "note_id", "subject_id")),
        (OMOP, "omop", ("note_text", "note_id", "person_id")),
    ],
)
def test_known_sources_are_seen_by_their_headers(
    case: object, names: list[str], preset: str, roles: tuple[str, ...]
) -> None:
    assert callable(case)
    found = resolve([case(n) for n in names], NotesSettings(), "f.csv")
    assert found.preset is not None
    assert found.preset.name == preset
    assert (found.columns.text, found.columns.note_id, found.columns.patient_id) == tuple(
        case(r) for r in roles
    )
    assert found.guessed == ()
    asked = resolve(
        [case(n) for n in names], NotesSettings.model_validate({"preset": preset}), "f.csv"
    )
    assert asked == found


def test_the_preset_can_be_refused_and_overruled() -> None:
    assert resolve(MIMIC4, NotesSettings(preset="none"), "f").preset is None
    found = resolve([*MIMIC3, "clean"], NotesSettings(text="clean"), "f")
    assert found.columns.text == "clean"
    assert found.error_flag == "ISERROR"


def test_mimic3_rows_entered_in_error_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "NOTEEVENTS.csv"
    rows = [
        ("1", "", "a"),
        ("2", "1", "wrong"),
        ("3", "0", "b"),
        ("4", " 1", "wrong"),
        ("5", "1", "wrong"),
    ]
    body = "".join(f'{i},9,,,,,Nursing,x,,{flag},"{text}"\n' for i, flag, text in rows)
    path.write_text(",".join(f'"{n}"' for n in MIMIC3) + "\n" + body)
    corpus = open_corpus(path, keep=("CATEGORY", "ISERROR"))
    for _ in range(2):  # the count is of one pass, not of all
        batch = next(corpus.batches())
        assert batch.column(2).to_pylist() == ["a", "b"]
        assert batch.column(4).to_pylist() == [None, "0"]
        assert corpus.skipped == {ENTERED_IN_ERROR: 3}
        assert batch.num_rows + corpus.skipped.total() == len(rows)


def test_mimic3_flags_may_be_numbers(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for flags in (
        pa.array([1, None, 0]),
        pa.array([1.0, None, 0.0]),
        pa.array(["1", None, "0"]).dictionary_encode(),
    ):
        table = {
            "row_id": [1, 2, 3],
            "subject_id": [7, 7, 8],
            "text": ["x", "y", "z"],
            "iserror": flags,
        }
        pq.write_table(pa.table(table), tmp_path / "n.parquet")
        corpus = open_corpus(tmp_path / "n.parquet")
        assert next(corpus.batches()).to_pydict() == {
            "note_id": ["2", "3"], "patient_id": ["7", "8"], "text": ["y", "z"]
        }  # fmt: skip


def test_an_error_row_with_a_used_id_is_still_a_duplicate(tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    path.write_text("row_id,subject_id,text,iserror\n1,1,a,\n1,1,b,1\n")
    with pytest.raises(InputError, match="row 2: duplicate id, already used in row 1"):
        list(open_corpus(path).batches())


def test_the_manifest_of_a_release_names_its_columns(tmp_path):
    (tmp_path / "notes.csv").write_text("num,who,body,text\n1,p,seen today,x\n")
    (tmp_path / "other.csv").write_text("note_id,patient_id,text\n1,p,other\n")
    roles = {"file": "notes.csv", "text": "body", "id": "num", "patient": "who"}
    (tmp_path / "manifest.json").write_text(json.dumps({"notes": roles}))
    for path in (tmp_path, tmp_path / "notes.csv"):
        (row,) = rows(open_corpus(path, NotesSettings(id="note_id")))
        assert (row.note_id, row.patient_id, row.text) == ("1", "p", "seen today")
    assert [row.text for row in rows(open_corpus(tmp_path / "other.csv"))] == ["other"]
    for hostile in ("[]", '{"notes": 1}', '{"notes": {"file": "../notes.csv", "text": 5}}'):
        (tmp_path / "manifest.json").write_text(hostile)
        assert [row.text for row in rows(open_corpus(tmp_path / "other.csv"))] == ["other"]
