"""`release --publish`: after all gates, and not before; `test_release_command.py` publishes a real release."""

import sys
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from clinveil.cli.main import main
from clinveil.core.upload import MARKER, SUCCESS
from clinveil.releases.manifest import released_files

sys.path.append(str(Path(__file__).parents[1] / "corpus"))
from signed_release import signed_release
from stores import store


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patch, store(patch) as made:
        yield made


@pytest.fixture()
def run(tmp_path):
    """The arguments that publish a signed release."""
    out = tmp_path / "out"
    signed_release(out / "release", vault=out / "vault")
    (out / "vault" / "key.bin").write_text("x")
    return ["publish", str(out)]


def names(server, path: str) -> set[str]:
    infos = server.files.get_file_info(pafs.FileSelector(path, recursive=True, allow_not_found=True))
    return {one.path[len(path) + 1 :] for one in infos if one.type == pafs.FileType.File}


def test_all_of_the_release_goes_and_nothing_of_the_vault(run, server, tmp_path, capfd):
    assert main([*run, "s3://notes/release"]) == 0
    assert names(server, "notes/release") == {
        *released_files(tmp_path / "out" / "release"),
        "SHA256SUMS",
        MARKER,
        SUCCESS,
    }
    again = [*run, "s3://notes/release"]
    assert main(again) == 2
    assert main([*again, "--force"]) == 0
    assert main([*again[:2], str(tmp_path / "elsewhere")]) == 2
    assert "is a local path" in (message := capfd.readouterr().err) and "cp -r OUT/release" in message


@pytest.mark.parametrize("left", [f"{MARKER}.part", f"{SUCCESS}.part"])
def test_what_a_killed_upload_to_a_folder_left_is_replaced(run, tmp_path, left):
    (tmp_path / "sent").mkdir()
    (tmp_path / "sent" / left).write_text("{")
    assert main([*run, f"file://{tmp_path}/sent"]) == 0
    assert (tmp_path / "sent" / SUCCESS).exists() and not (tmp_path / "sent" / left).exists()


def test_an_upload_that_finds_no_space_can_be_repeated(run, tmp_path):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))  # bytes of a file
    try:
        assert main([*run, f"file://{tmp_path}/sent"]) == 5
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert main([*run, f"file://{tmp_path}/sent"]) == 0


def test_what_does_not_verify_is_not_sent(run, server, capfd, tmp_path):
    (tmp_path / "out" / "release" / "README.md").write_text("changed")
    assert main([*run, "s3://notes/changed"]) == 3
    assert "checks of its release failed" in capfd.readouterr().err
    assert names(server, "notes/changed") <= {MARKER}
    assert main(["publish", str(tmp_path), "s3://notes/changed"]) == 3
    assert "contains no release" in capfd.readouterr().err


def test_a_target_that_cannot_be_had_is_refused(run, server):
    with server.files.open_output_stream("notes/of_others/x", compression=None) as file:
        file.write(b"x")
    assert main([*run, "s3://notes/of_others"]) == 2
    assert main([*run, "s3://nobody-has-this/x"]) == 5
