"""`release --publish`: after all gates, and not before; `test_release_command.py` publishes a real release."""

import sys
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from clinveil.cli.main import main
from clinveil.core.upload import MARKER, SUCCESS
from clinveil.releases.manifest import Check

sys.path.append(str(Path(__file__).parents[1] / "corpus"))
from stores import store


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patch, store(patch) as made:
        yield made


@pytest.fixture()
def run(tmp_path, monkeypatch):
    """The arguments that publish a release of two files, which verifies."""
    out = tmp_path / "out"
    (out / "release" / "sub").mkdir(parents=True)
    (out / "vault").mkdir()
    for name in ("release/notes.csv", "release/sub/more.csv", "vault/key.bin"):
        (out / name).write_text("x")
    monkeypatch.setattr("clinveil.releases.outcome.verify", lambda folder: [Check("all is well", True)])
    return ["publish", str(out)]


def names(server, path: str) -> set[str]:
    infos = server.files.get_file_info(pafs.FileSelector(path, recursive=True, allow_not_found=True))
    return {one.path[len(path) + 1 :] for one in infos if one.type == pafs.FileType.File}


def test_all_of_the_release_goes_and_nothing_of_the_vault(run, server, tmp_path):
    assert main([*run, "s3://notes/release"]) == 0
    assert names(server, "notes/release") == {"notes.csv", "sub/more.csv", MARKER, SUCCESS}
    again = [*run, "s3://notes/release"]
    assert main(again) == 2
    assert main([*again, "--force"]) == 0
    assert main([*again[:2], str(tmp_path / "elsewhere")]) == 2


def test_what_does_not_verify_is_not_sent(run, server, monkeypatch, capfd, tmp_path):
    monkeypatch.setattr("clinveil.releases.outcome.verify", lambda folder: [Check("the hashes agree", False)])
    assert main([*run, "s3://notes/changed"]) == 3
    assert "1 checks of its release failed" in capfd.readouterr().err
    assert names(server, "notes/changed") <= {MARKER}
    assert main(["publish", str(tmp_path), "s3://notes/changed"]) == 3
    assert "contains no release" in capfd.readouterr().err


def test_a_target_that_cannot_be_had_is_refused(run, server):
    with server.files.open_output_stream("notes/of_others/x", compression=None) as file:
        file.write(b"x")
    assert main([*run, "s3://notes/of_others"]) == 2
    assert main([*run, "s3://nobody-has-this/x"]) == 5
