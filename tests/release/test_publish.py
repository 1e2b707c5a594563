"""A release in a store of objects: all of `release/`, nothing of the vault, and nothing that failed."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow.fs as pafs
import pytest
from release_cases import demo_notes_in, release

from clinveil.cli.main import main
from clinveil.core.upload import MARKER, SUCCESS

sys.path.append(str(Path(__file__).parents[1] / "corpus"))
from stores import store


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patch, store(patch) as made:
        yield made


@pytest.fixture(scope="module")
def desk(server, tmp_path_factory):
    """A folder with a finished release, which was published too."""
    folder = demo_notes_in(tmp_path_factory.mktemp("desk"))
    assert main(release(folder, "out", "--publish", "s3://notes/release")) == 0
    return folder


def names(server, path: str) -> set[str]:
    infos = server.files.get_file_info(pafs.FileSelector(path, recursive=True, allow_not_found=True))
    return {one.path[len(path) + 1 :] for one in infos if one.type == pafs.FileType.File}


RELEASE = {"notes.parquet", "README.md", "manifest.json", "report.html", "SHA256SUMS", MARKER, SUCCESS}


def test_a_release_is_published_whole_and_without_the_vault(desk, server):
    assert names(server, "notes/release") == RELEASE
    with server.files.open_input_stream("notes/release/notes.parquet", compression=None) as file:
        assert file.read() == (desk / "out/release/notes.parquet").read_bytes()


def test_publish_sends_a_finished_release_once(desk, server):
    run = ["publish", str(desk / "out"), "s3://notes/again"]
    assert main(run) == 0
    assert names(server, "notes/again") == RELEASE
    assert main(run) == 2
    assert main([*run, "--force"]) == 0
    assert main(["publish", str(desk / "out"), str(desk / "elsewhere")]) == 2


def test_what_is_no_sealed_release_is_not_sent(desk, server, tmp_path, capfd):
    shutil.copytree(desk / "out" / "release", tmp_path / "out" / "release")
    with (tmp_path / "out/release/README.md").open("a") as file:
        file.write("more")
    assert main(["publish", str(tmp_path / "out"), "s3://notes/changed"]) == 3
    assert "its release does not verify" in capfd.readouterr().err
    assert main(["publish", str(tmp_path), "s3://notes/changed"]) == 3
    assert "holds no release" in capfd.readouterr().err
    assert names(server, "notes/changed") <= {MARKER}


def test_a_refused_run_sends_nothing(desk, server, monkeypatch):
    refused = SimpleNamespace(refused=True, summary=lambda: [])
    monkeypatch.setattr("clinveil.cli.commands.release.run_release", lambda *_, **__: refused)
    assert main(release(desk, "other", "--publish", "s3://notes/refused")) == 4
    assert names(server, "notes/refused") <= {MARKER}


def test_a_target_that_is_taken_stops_a_run_before_its_work(desk, server, monkeypatch):
    monkeypatch.setattr("clinveil.cli.commands.release.run_release", lambda *_, **__: pytest.fail("worked"))
    assert main(release(desk, "other", "--publish", "s3://notes/release")) == 2
    assert main(release(desk, "other", "--publish", "s3://nobody-has-this/x")) == 5
