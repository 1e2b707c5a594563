"""A damaged archive does not pass in silence: zstd frames without a checksum are said."""

from __future__ import annotations

import shutil
import subprocess
import warnings

import pyarrow as pa
import pytest

from clinveil.cli.main import main
from clinveil.core.errors import InputError, InputWarning
from clinveil.corpus.open import open_corpus
from clinveil.corpus.streams import has_unchecked_frame

BODY = b"id,text\n" + b"".join(b"%d,some words of note %d\n" % (i, i * 7919) for i in range(4_000))
# An empty frame with a checksum (XXH64 of nothing), and a skippable one: RFC 8878, sections 3.1.1 and 3.1.2.
EMPTY_CHECKED = bytes.fromhex("28b52ffd 24 00 010000 99e9d851")
SKIPPABLE = bytes.fromhex("502a4d18 03000000 aabbcc")


def unchecked(body=BODY):
    return pa.compress(body, codec="zstd", asbytes=True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (EMPTY_CHECKED, False),
        (SKIPPABLE + EMPTY_CHECKED, False),
        (unchecked(), True),
        (EMPTY_CHECKED + unchecked(), True),
        (SKIPPABLE + unchecked(), True),
        (b"id,text\n", False),
        (EMPTY_CHECKED[:7], False),
    ],
)
def test_frames_are_told_apart(tmp_path, data, said):
    (tmp_path / "a.zst").write_bytes(data)
    assert has_unchecked_frame(tmp_path / "a.zst") is said


def test_the_want_of_a_checksum_is_said_once_in_one_line(tmp_path, capsys):
    (tmp_path / "a.csv.zst").write_bytes(unchecked())
    with pytest.warns(InputWarning, match=r"a.csv.zst: zstd frames without checksum"):
        open_corpus(tmp_path / "a.csv.zst")
    assert main(["inspect", str(tmp_path / "a.csv.zst")]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "checksum" in line]
    assert len(said) == 1 and said[0].startswith("clinveil: a.csv.zst: ")


@pytest.mark.skipif(shutil.which("zstd") is None, reason="needs the zstd program")
def test_of_a_checked_file_nothing_is_said_and_every_flipped_bit_is_found(tmp_path):
    (tmp_path / "a.csv").write_bytes(BODY)
    subprocess.run(["zstd", "-q", "--check", "a.csv"], cwd=tmp_path, check=True)
    path = tmp_path / "a.csv.zst"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(b.num_rows for b in open_corpus(path).batches()) == 4_000
    data = path.read_bytes()
    for place in range(30, len(data), len(data) // 20):
        path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        with pytest.raises(InputError):
            list(open_corpus(path).batches())
