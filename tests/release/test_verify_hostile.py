"""`verify` reads what somebody else made: damage is a failed check, never a crash."""

from __future__ import annotations

import json

import pytest
from signed_release import SIGNER

from clinveil.core import InputError, sha256
from clinveil.releases import verify
from clinveil.releases.manifest import SCHEMA, sealed, write_sums

NOTES = {
    "file": "notes.csv",
    "rows": 1,
    "text": "text",
    "id": "note_id",
    "patient": None,
    "keep": [],
}
GOOD = {
    "schema": SCHEMA,
    "audience": "agreement",
    "gates": [{"name": "a", "passed": True, "outcome": "held"}],
    "test_seed": False,
    "notes": NOTES,
}


def release(folder, document=GOOD, *, raw=None, wrong=""):
    folder.mkdir()
    (folder / "notes.csv").write_text('"note_id","text"\n"1","a b"\n')
    (folder / "README.md").write_text("x")
    (folder / "report.html").write_text("x")
    files = {name: sha256(folder / name) for name in ("notes.csv", "README.md", "report.html")}
    document = {"files": files, "signing_key": SIGNER.fingerprint, **document}
    if wrong:
        document["files"] = {**files, wrong: "0" * 64}
    manifest = (raw if raw is not None else sealed(document)).encode()
    (folder / "manifest.json").write_bytes(manifest)
    (folder / "manifest.sig").write_bytes(SIGNER.sign(manifest))
    (folder / "signing-key.pem").write_bytes(SIGNER.public_pem)
    write_sums(folder)
    return folder


def test_a_good_one(tmp_path):
    assert all(check.passed for check in verify(release(tmp_path / "r")))


@pytest.mark.parametrize(
    "change",
    [
        {"notes": {**NOTES, "keep": None}},
        {"notes": {**NOTES, "file": "../secret.csv"}},
        {"notes": {**NOTES, "rows": 2}},
        {"notes": {**NOTES, "text": "other"}},
        {"notes": None},
        {"gates": []},
        {"gates": [{"name": "a", "passed": False, "outcome": "not held"}]},
        {"gates": "all fine"},
        {"test_seed": True},
        {"files": {"notes.csv": "0" * 64}},
        {"files": None},
    ],
)
def test_each_lie_fails(tmp_path, change):
    assert not all(check.passed for check in verify(release(tmp_path / "r", {**GOOD, **change})))


RAWS = ["", "[]", "{}", "nul", '{"schema": 3}', json.dumps({"schema": SCHEMA}), "[" * 50_000]


def test_a_changed_file_is_not_called_a_note(tmp_path):
    folder = release(tmp_path / "r", wrong="README.md")
    (failed,) = [check for check in verify(folder) if "README.md" in str(check)]
    assert "released files" in str(failed) and "notes" not in str(failed)


@pytest.mark.parametrize("case", range(len(RAWS)))
def test_no_manifest(tmp_path, case):
    assert not all(check.passed for check in verify(release(tmp_path / "r", raw=RAWS[case])))


def test_sums_that_are_no_text(tmp_path):
    folder = release(tmp_path / "r")
    (folder / "SHA256SUMS").write_bytes(b"\xff\xfe")
    assert not all(check.passed for check in verify(folder))


def test_nothing_to_verify(tmp_path):
    with pytest.raises(InputError):
        verify(tmp_path / "absent")
