"""`release --publish`: after all gates, and not before; `test_release_command.py` publishes a real
release.
"""

import sys
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from clinveil.cli.main import main
from clinveil.core import upload
from clinveil.core.upload import MARKER, SUCCESS
from clinveil.releases.manifest import released_files, verify

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
    infos = server.files.get_file_info(
        pafs.FileSelector(path, recursive=True, allow_not_found=True)
    )
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
    for inside in ("vault", "release"):
        assert main([*again[:2], f"file://{tmp_path}/out/{inside}/x"]) == 2
        assert not (tmp_path / "out" / inside / "x").exists()
    assert main([*again[:2], str(tmp_path / "elsewhere")]) == 2
    assert (
        "is a local path" in (message := capfd.readouterr().err) and "cp -r OUT/release" in message
    )


def test_a_downloaded_release_is_sent_with_its_sign_last(run, server, tmp_path, monkeypatch):
    release = tmp_path / "out" / "release"
    sent = []
    assert main([*run, "s3://notes/down"]) == 0
    for here, there in (("down", "up"), ("up", "again")):
        for name in released_files(release):
            (release / name).unlink()
        for name in names(server, f"notes/{here}"):
            with server.files.open_input_stream(f"notes/{here}/{name}") as file:
                (release / name).write_bytes(file.read())
        assert all(check.passed for check in verify(release))
        for function in ("_put", "_write"):
            real = getattr(upload, function)

            def recorded(system, *given, real=real):
                sent.extend(path.rpartition("/")[2] for path in given if isinstance(path, str))
                real(system, *given)

            monkeypatch.setattr(upload, function, recorded)
        assert main([*run, f"s3://notes/{there}"]) == 0
        monkeypatch.undo()
        assert sent.index(SUCCESS) == len(sent) - 1
        sent.clear()


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
