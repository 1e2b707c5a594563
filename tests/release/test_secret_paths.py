"""No file of a release names a path of the custodian."""

from __future__ import annotations

import pytest
from kind_cases import KINDS, arguments, write_notes

from clinveil.cli import main
from clinveil.releases import ReleaseSettings

SECRET = "qzsecretplace"


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_of_a_release_names_a_path_of_the_custodian(kind, tmp_path):
    folder = tmp_path / SECRET
    folder.mkdir()
    write_notes(folder)
    (folder / "staff.txt").write_text("Qamira Brixtow\n")
    (folder / "words.txt").write_text("fever\n")
    (folder / "policy.toml").write_text('[labels]\nNAME = "surrogate"\n')
    (folder / "public.txt").write_text("fever pain cough\n" * 20)
    files = {
        "identifiers.staff": "staff.txt",
        "identifiers.phi_policy": "policy.toml",
        "ledger": "ledger",
    }
    if kind == "obfuscated":
        files |= {"channel.keep_words": "words.txt", "vectors.more_text": "public.txt"}
    secret = [
        name for name, one in ReleaseSettings.declared().items() if one.declared.secret == "path"
    ]
    assert files.keys() <= {*secret}
    given = [f"--set={name}={folder / file}" for name, file in files.items()]
    assert main([*arguments(folder, "out", kind, "--seed", "3"), *given]) == 4
    release = folder / "out" / "vault" / "refused"
    texts = {path.name: path.read_bytes() for path in release.rglob("*") if path.is_file()}
    assert {"manifest.json", "report.html", "README.md", "notes.csv"} <= texts.keys()
    assert not [name for name, text in texts.items() if SECRET.encode() in text]
    assert b'"identifiers.staff_given": true' in texts["manifest.json"]
