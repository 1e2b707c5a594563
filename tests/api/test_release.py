"""`clinveil.release` and `verify` on a frame: what the commands write, and nothing left next to
it.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

import clinveil
from clinveil.core import InputError, InputWarning, UsageError
from no_limits import NO_LIMITS


@pytest.fixture(scope="module")
def frame():
    return pl.from_arrow(
        pa.Table.from_batches(list(clinveil.demo_corpus(patients=60, seed=1).batches()))
    )


@pytest.fixture(scope="module")
def made(frame, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "out"
    said = []
    ledger = out.with_name("ledger")
    quick = {
        "settings": {"vectors": {"epochs": 1, "window": 5, "dim": 16}},
        "limits": NO_LIMITS,  # of 60 patients, some have a group of their own
    }
    return (
        clinveil.release(
            frame,
            out,
            kind="obfuscated",
            label="diagnosis_group",
            ledger=ledger,
            say=said.append,
            **quick,
        ),
        out,
        said,
    )


def test_a_frame_is_released_behind_gates(made, frame):
    outcome, out, said = made
    assert not outcome.refused, [gate.name for gate in outcome.gates if not gate.passed]
    assert sorted(path.name for path in out.parent.iterdir()) == ["ledger", "out"]
    released = pl.read_parquet(outcome.folder.release / "notes.parquet")
    assert released.columns == ["note_id", "patient_id", "text", "diagnosis_group"]
    assert len(released) == len(frame) and not set(released["note_id"]) & set(frame["note_id"])
    assert any("notes of 60 patients" in line for line in said)


def test_it_can_be_verified_and_its_findings_are_a_frame(made):
    outcome, _, _ = made
    assert all(check.passed for check in clinveil.verify(outcome.folder.release))
    findings = clinveil.to_frame(outcome.findings, "polars")
    assert {"attack.inversion", "utility.transfer"} <= set(findings["measure"])
    (outcome.folder.release / "notes.parquet").write_bytes(b"")
    assert not all(check.passed for check in clinveil.verify(outcome.folder.release))


def test_later_notes_reuse_it(made, tmp_path):
    _, out, _ = made
    later = pl.from_arrow(
        pa.Table.from_batches(list(clinveil.demo_corpus(patients=62, seed=1).batches()))
    )
    how = {"limits": NO_LIMITS, "label": "diagnosis_group"}
    how["ledger"] = out.with_name("ledger")
    added = clinveil.release(later, tmp_path / "out2", reuse=out / "vault", **how)
    old = {row["source_patient_id"]: row["patient_id"] for row in _crosswalk(out)}
    new = {row["source_patient_id"]: row["patient_id"] for row in _crosswalk(tmp_path / "out2")}
    assert len(set(new) - set(old)) == 2 and all(
        new[one] == old[one] for one in set(new) & set(old)
    )
    assert not added.refused, [gate.name for gate in added.gates if not gate.passed]
    released = pl.read_parquet(added.folder.release / "notes.parquet")
    assert released.columns == ["note_id", "patient_id", "text", "diagnosis_group"]
    assert set(released["patient_id"]) <= set(new.values())
    with pytest.raises(UsageError, match="exclude each other"):
        clinveil.release(later, tmp_path / "out3", vectors="v", reuse=out / "vault")
    with pytest.raises(UsageError, match=r"vectors\.dim cannot differ"):
        clinveil.release(later, tmp_path / "out3", reuse=out / "vault", settings={"vectors.dim": 8})
    assert not (tmp_path / "out3").exists()


def _crosswalk(out):
    return pl.read_parquet(out / "vault/crosswalk.parquet").to_dicts()


def test_what_does_not_fit_leaves_nothing(frame, tmp_path):
    with pytest.raises(UsageError, match="no setting labels"):
        clinveil.release(frame, tmp_path / "out", labels="diagnosis_group")
    with pytest.raises(UsageError, match=r"no setting epochs \(its name is vectors\.epochs or"):
        clinveil.release(frame, tmp_path / "out", epochs=1)
    with pytest.raises(UsageError, match="pass a dictionary"):
        clinveil.release(frame, tmp_path / "out", settings="vectors")
    with pytest.raises(UsageError, match="lax: the file does not exist"):
        clinveil.release(frame, tmp_path / "out", config="lax")
    with pytest.raises(UsageError, match=r"strict: channel\.n applies to kind obfuscated"):
        clinveil.release(frame, tmp_path / "out", config="strict", kind="deidentified")
    with pytest.raises(InputError, match="50"):
        clinveil.release(frame.head(20), tmp_path / "out", kind="obfuscated")
    with pytest.raises(UsageError, match="one of lr"):
        clinveil.release(
            frame, tmp_path / "out", kind="obfuscated", settings={"model": ("lr", "nothing")}
        )
    assert not list(tmp_path.iterdir())


def test_a_refusal_and_unknown_patients_are_warned_of(frame, tmp_path):
    with pytest.warns(InputWarning) as told:
        made = clinveil.release(
            frame["text"].to_list()[:80],
            tmp_path / "out",
            kind="obfuscated",
            seed=1,
            settings={"vectors": {"epochs": 1, "dim": 8}},
        )
    said = " ".join(str(one.message) for one in told)
    assert (
        made.refused
        and "no patient column" in said
        and "Must not leave" in said
        and len(repr(made)) < 500
    )


def test_synthetic_notes_of_a_frame(frame, tmp_path):
    how = {"lm": {"model": "unigram"}, "synthetic": {"count": 20}}
    made = clinveil.release(frame, tmp_path / "out", kind="synthetic", seed=1, **how)
    assert made.kind == "synthetic" and [gate.name for gate in made.gates if not gate.passed] == [
        "no test seed"
    ]
    assert (made.folder.refused / "notes.parquet").exists() and (
        made.folder.vault / "model"
    ).is_dir()
    with pytest.raises(UsageError, match="layrs"):
        clinveil.release(frame, tmp_path / "never", kind="synthetic", lm={"layrs": 1})
