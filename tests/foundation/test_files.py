"""Whole or not at all."""

from __future__ import annotations

import hashlib
import stat

import pytest

from clinveil.errors import UsageError
from clinveil.files import default_vault, private_folder, private_text, sha256, whole


def test_success_renames_and_is_private(tmp_path):
    out = tmp_path / "a" / "x.csv"
    with whole(out) as part:
        part.write_text("done")
        assert not out.exists()
    assert out.read_text() == "done"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert list(out.parent.iterdir()) == [out]


def test_a_folder_is_private_all_the_way_down(tmp_path):
    with whole(tmp_path / "d") as part:
        (part / "sub").mkdir(parents=True)
        (part / "sub" / "f").write_text("1")
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "d" / "sub" / "f").stat().st_mode) == 0o600


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_failure_leaves_nothing(tmp_path, failure):
    with pytest.raises(failure), whole(tmp_path / "x") as part:
        part.write_text("half")
        raise failure
    assert list(tmp_path.iterdir()) == []


def test_an_existing_output_is_refused_or_kept_until_success(tmp_path):
    out = tmp_path / "x"
    out.write_text("old")
    with pytest.raises(UsageError, match="--force"), whole(out):
        pass
    with pytest.raises(ValueError, match="stop"), whole(out, force=True) as part:
        part.write_text("half")
        raise ValueError("stop")
    assert out.read_text() == "old"
    with whole(out, force=True) as part:
        part.write_text("new")
    assert out.read_text() == "new"
    assert list(tmp_path.iterdir()) == [out]


def test_small_things(tmp_path):
    assert default_vault(tmp_path / "out.csv").name == "out.csv.vault"
    folder = private_folder(tmp_path / "v")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    private_text(folder / "t", "é")
    assert stat.S_IMODE((folder / "t").stat().st_mode) == 0o600
    assert sha256(folder / "t") == hashlib.sha256("é".encode()).hexdigest()
