"""`clinveil.Deidentifier` and the command are one engine; spans come and go as frames or lists."""

from __future__ import annotations

import shlex

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import clinveil
from clinveil.cli import main
from clinveil.core import InputError, InputWarning, UsageError
from clinveil.corpus import write_demo

KEY = clinveil.Key.from_seed(7)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api") / "demo"
    write_demo(folder, 3, 4)
    table = pq.read_table(folder / "notes.parquet").slice(0, 8)
    pq.write_table(table.select(["note_id", "patient_id", "text"]), folder / "some.parquet")
    return folder


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"patients": "patients.parquet", "phi_profile": "safe-harbor"},
        {"phi_policy": "site.toml", "propagate": "note", "no_tagger": True},
        {"phi_profile": "max-recall", "propagate": "none"},
        {"mode": "remove"},
    ],
    ids=["none", "feed and profile", "policy file", "recall first", "mode"],
)
def test_the_api_and_the_command_give_the_same_bytes(demo, tmp_path, monkeypatch, settings):
    monkeypatch.chdir(demo)
    (demo / "site.toml").write_text('[labels]\nNAME = "surrogate"\nDATE = "generalise"\n')
    named = {"patients": "--patients={}", "phi_profile": "--phi-profile={}"}
    flags = [
        named.get(k, f"--set=identifiers.{k}={{}}").format(str(v).lower() if v is True else v)
        for k, v in settings.items()
    ]
    out = tmp_path / "out.parquet"
    assert (
        main(
            [
                *shlex.split(
                    f"deidentify some.parquet -o {out} --seed 7 --workers 1 -q --keep-ids"
                ),
                *flags,
            ]
        )
        == 0
    )
    own = {name: value for name, value in settings.items() if name not in ("mode", "patients")}
    given = {name: settings[name] for name in ("mode", "patients") if name in settings}
    made = clinveil.Deidentifier(key=KEY, settings=own, **given).transform(
        pq.read_table("some.parquet")
    )
    assert made.to_pylist() == pq.read_table(out).to_pylist()


def test_a_setting_is_checked_and_a_clone_has_it():
    with pytest.raises(UsageError, match="did you mean phi_profile"):
        clinveil.Deidentifier(settings={"phi_profil": "research"}).fit()
    with pytest.raises(UsageError, match="phi_profile"):
        clinveil.Deidentifier("tag", settings={"phi_profile": "research"}).fit()
    with pytest.raises(UsageError, match="patients"):
        clinveil.Deidentifier(settings={"patients": "x.parquet"}).fit()
    assert clone(clinveil.Deidentifier(settings={"no_tagger": True})).settings == {
        "no_tagger": True
    }
    with pytest.warns(InputWarning, match="."):
        clinveil.Deidentifier(settings={"phi_profile": "limited-dataset"}).fit()


def test_patients_that_are_others_are_told():
    known = {
        "p1": clinveil.Patient("p1", ("Ana", "Lopez")),
        "p2": clinveil.Patient("p2", ("Ed", "Wu")),
    }
    frame = pd.DataFrame({"patient_id": ["p9"], "text": ["No pain."]})
    with pytest.raises(InputError, match="none of its 2 patients"):
        clinveil.Deidentifier(patients=known).transform(frame)
    with pytest.warns(InputWarning, match="1 of 2"):
        clinveil.Deidentifier(patients=known).transform(frame.assign(patient_id="p1"))
    assert [
        s.label for s in clinveil.Deidentifier(patients=known).find("lopez was seen", "p1")
    ] == ["NAME"]


@pytest.mark.parametrize("library", [pd, pl])
def test_spans_of_a_frame_are_a_frame_and_can_be_scored(demo, library):
    frame = library.read_parquet(demo / "some.parquet")
    found = clinveil.Deidentifier().find_all(frame)
    assert type(found) is type(frame)
    texts = dict(zip(frame["note_id"], frame["text"], strict=True))
    spans = list(
        zip(*(found[name] for name in ("note_id", "start", "end", "text", "why")), strict=True)
    )
    assert spans and all(
        texts[note][start:end] == text and why for note, start, end, text, why in spans
    )
    of_itself = clinveil.evaluate.deidentification(frame, found, found=found)
    assert {f.value for f in of_itself if f.measure in ("phi.recall", "phi.precision")} == {1.0}
    alone = library.DataFrame({"note_id": ["1"], "text": ["No pain."]})
    assert len(clinveil.Deidentifier().find_all(alone)) == 0


def test_spans_of_a_list_stay_at_their_texts():
    found = clinveil.Deidentifier().find_all(["No pain.", None, "Dr. Sarah Miller called."])
    assert [len(of) for of in found] == [0, 0, 1] and found[2][0].why
    assert (
        clinveil.Deidentifier("tag").treat("Dr. Sarah Miller called.", found[2])
        == "Dr. [NAME] called."
    )


def test_spans_of_others_are_checked():
    tagging = clinveil.Deidentifier("tag")
    assert tagging.treat("Ana Lopez", [(4, 9, "NAME"), (0, 6, "NAME")]) == "[NAME]"
    for wrong in ((0, 99, "NAME"), (3, 3, "NAME"), (0, 3, "NOBODY"), (0, 3)):
        with pytest.raises(InputError):
            tagging.treat("Ana", [wrong])
    with pytest.raises(InputError, match="column end is missing"):
        clinveil.evaluate.deidentification(
            ["Ana"], pd.DataFrame({"note_id": ["0"], "start": [0], "label": ["NAME"]})
        )
    with pytest.raises(InputError, match="wrong shape"):
        clinveil.evaluate.deidentification(["Ana"], {"0": "NAME"})
