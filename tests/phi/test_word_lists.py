"""Lists of a site: staff, words that are always replaced, and words that are never replaced."""

from __future__ import annotations

import pickle
import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.cli import main
from clinveil.core import InputError, Key, UsageError
from clinveil.corpus import Patient, read_patients, read_staff
from clinveil.phi import Finder, NoteDeidentifier, NoteView, PhiSettings
from clinveil.phi.detection.staff import read_staff_names
from clinveil.phi.treatment.policy import Policy


def found(staff, text):
    return sorted(text[s.start : s.end] for s in staff.spans(NoteView(text), "known"))


@pytest.fixture
def staff(tmp_path):
    path = tmp_path / "staff.txt"
    lines = [
        "Dr. Zopheny Brixtow, MD",
        "Crundle, Qamira",
        "May White",
        "Will Long",
        "Yldana Q. Dwexham-Fjolnir RN",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_staff_names(path)


def test_names_are_read_without_titles_and_turned_round(tmp_path):
    path = tmp_path / "staff.csv"
    path.write_text('name\n"Dr. Zopheny Brixtow, MD"\n"Crundle, Qamira"\n', encoding="utf-8")
    assert list(read_staff(path)) == [("Zopheny", "Brixtow"), ("Qamira", "Crundle")]
    pq.write_table(
        pa.table({"given": ["Qamira"], "family": ["Crundle"]}), tmp_path / "staff.parquet"
    )
    assert list(read_staff(tmp_path / "staff.parquet")) == [("Qamira", "Crundle")]


def test_full_names_in_both_orders_and_family_names_alone(staff):
    assert found(staff, "Will defer to Brixtow.") == ["Brixtow"]
    assert "Qamira Crundle" in found(staff, "per Qamira Crundle")
    assert "CRUNDLE, QAMIRA" in found(staff, "CRUNDLE, QAMIRA reviewed")
    assert "Qamira T. Crundle" in found(staff, "by Qamira T. Crundle today")
    assert "Fjolnir" in found(staff, "Fjolnir's plan")


def test_ordinary_words_need_the_full_name(staff):
    assert found(staff, "May return. White count normal. The long wait. She may will.") == []
    assert found(staff, "seen by May White") == ["May White"]
    assert found(staff, "it may white out") == []
    assert found(staff, "brixtow in lower case") == []


def test_a_worker_reads_the_list_again_instead_of_receiving_it(staff):
    assert len(pickle.dumps(staff)) < 1000
    assert found(pickle.loads(pickle.dumps(staff)), "Brixtow") == ["Brixtow"]
    assert "Brixtow" not in repr(staff)


@pytest.mark.parametrize("name", ["staff.txt", "staff.csv"])
def test_a_list_in_another_encoding_is_one_clear_line(tmp_path, capsys, name):
    (tmp_path / "notes.csv").write_text("note_id,text\n1,fever\n2,cough\n")
    (tmp_path / name).write_bytes("name\nJosé Núñez\n".encode("cp1252"))
    command = shlex.split(
        f"deidentify {tmp_path / 'notes.csv'} -o {tmp_path / 'o.csv'} --workers 1"
    )
    assert main([*command, "--staff", str(tmp_path / name)]) == 3
    error = [line for line in capsys.readouterr().err.splitlines() if "UTF-8" in line]
    assert len(error) == 1 and name in error[0]
    with pytest.raises(InputError, match="UTF-8"):
        list(read_staff(tmp_path / name))
    (tmp_path / "people.csv").write_bytes("patient_id,name\n1,José Núñez\n".encode("cp1252"))
    with pytest.raises(InputError, match="UTF-8"):
        read_patients(tmp_path / "people.csv")


def test_lists_without_names_are_refused(tmp_path):
    (tmp_path / "empty.txt").write_text("\n\n")
    (tmp_path / "other.csv").write_text("person\nA B\n")
    for name, message in (
        ("empty.txt", "no names"),
        ("other.csv", "no column of names"),
        ("gone.txt", "cannot be read"),
    ):
        with pytest.raises(InputError, match=message):
            list(read_staff(tmp_path / name))


def policy(folder, find=None, keep=None, rest=""):
    lines = [rest] if rest.startswith("base") else []
    for name, words in (("find_words", find), ("keep_words", keep)):
        if words is not None:
            (folder / f"{name}.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
            lines.append(f'{name} = "{name}.txt"')
    path = folder / "site.toml"
    path.write_text("\n".join([*lines, "" if rest.startswith("base") else rest]), encoding="utf-8")
    return path


def treated(path, text, patient=None):
    settings = PhiSettings(phi_policy=path)
    known = {"p1": patient} if patient else None
    deidentifier = NoteDeidentifier.of(settings, Key.from_seed(1), patients=known)
    return deidentifier.treat(text, deidentifier.find(text, "p1"), "p1")[0]


def test_find_words_are_always_replaced_with_their_label(tmp_path):
    path = policy(tmp_path, find=["Blue Heron", "zq7\tID", "lark wing\tHOSPITAL"])
    text = "At blue  heron with ZQ7, in Lark-Wing; bluebird stays."
    assert treated(path, text) == "At [NAME] with [ID], in [HOSPITAL]; bluebird stays."


def test_keep_words_are_cut_out_of_the_spans_of_detectors(tmp_path):
    text = "Dr. Okafor Dwexham saw Mr. Yasmin."
    assert "Okafor" not in treated(policy(tmp_path), text)
    path = policy(tmp_path, keep=["okafor", "Yasmin"])
    assert treated(path, text) == "Dr. Okafor [NAME] saw Mr. Yasmin."


def test_a_keep_word_hides_no_name_of_the_patient_list(tmp_path):
    path = policy(tmp_path, keep=["Okafor", "May"])
    patient = Patient("p1", ("May", "Okafor"), phones=("216-555-0144",))
    assert "Okafor" not in treated(path, "Okafor slept. May Okafor left.", patient)
    assert "Okafor" in treated(path, "Mr. Okafor slept.")


def test_a_keep_word_is_no_part_of_another_word_or_number(tmp_path):
    path = policy(tmp_path, keep=["Yasmin", "555"])
    assert "Yasmin" not in treated(path, "Mr. Smith-Yasmin left.")
    assert "555" not in treated(path, "Call 216-555-0144.").replace("[PHONE]", "")


def test_a_keep_word_is_no_residue_but_the_patients_own_row_is(tmp_path):
    path = policy(tmp_path, keep=["123456", "Brixtow"])
    patient = Patient("p1", ("Zopheny", "Brixtow"))
    engine = NoteDeidentifier(
        Key.from_seed(1), policy=Policy.read(path), patients={"p1": patient}, finders=[]
    )
    batch = pa.record_batch(
        {"note_id": ["n"], "patient_id": ["p1"], "text": ["code 123456; Brixtow"]}
    )
    assert [one.text for one in engine(batch).residues] == ["Brixtow"]


def test_words_of_a_policy_are_part_of_its_identity_and_its_record(tmp_path):
    first = Policy.read(policy(tmp_path, find=["heron"]))
    second = Policy.read(policy(tmp_path, find=["stork"]))
    assert first.digest != second.digest and "heron" not in repr(first) + str(first.record())


@pytest.mark.parametrize(
    ("find", "rest", "message"),
    [
        (["x\tBIRD"], "", "unknown label"),
        ([""], "", "no words"),
        (["halton\tCITY"], 'base = "limited-dataset"', "keeps CITY"),
    ],
)
def test_wrong_lists_are_refused(tmp_path, find, rest, message):
    with pytest.raises(UsageError, match=message):
        Policy.read(policy(tmp_path, find=find, rest=rest))


def test_a_list_of_words_in_another_encoding_is_refused(tmp_path):
    path = policy(tmp_path, keep=["x"])
    (tmp_path / "keep_words.txt").write_bytes("Núñez\n".encode("cp1252"))
    with pytest.raises(UsageError, match="UTF-8"):
        Policy.read(path)


def test_staff_of_the_settings_is_found_in_all_notes(tmp_path):
    (tmp_path / "staff.txt").write_text("Zopheny Brixtow\n", encoding="utf-8")
    finder = Finder.of(PhiSettings(staff=tmp_path / "staff.txt", no_tagger=True))
    text = "plan as brixtow and Brixtow wrote"
    assert [text[s.start : s.end] for s in finder.find(text)] == ["Brixtow"]
