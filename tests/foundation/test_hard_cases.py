"""Settings and places that once made a long run, a wrong one, or an internal error: now one line,
before any work.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.cli import main


@pytest.fixture
def notes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = {"id": ["1", "2"], "text": ["a b", "c d"], "größe": ["1", "2"], "raw": [b"\xff", b"x"]}
    pq.write_table(pa.table(table), "notes.parquet")
    return "notes.parquet"


def refused(capsys, *arguments, code=2):
    """The one line that is said."""
    before = sorted(os.listdir())
    assert main([*arguments]) == code
    said = [line for line in capsys.readouterr().err.splitlines() if "no patient " not in line]
    assert len(said) == 1 and sorted(os.listdir()) == before
    return said[0]


@pytest.mark.parametrize(
    "flags",
    [
        ["--set", "notes.encoding=utf\n-8"],
        ["--set", "notes.text="],
        ["--set", "notes.id="],
        ["--set", "notes.patient="],
        ["--set", "notes.max_note_bytes=0"],
    ],
)
def test_a_name_that_is_none_is_refused(notes, capsys, flags):
    assert flags[-1].partition("=")[0] in refused(
        capsys, "deidentify", notes, "-o", "out.parquet", *flags
    )


def test_a_full_disk_that_arrow_finds_is_named(notes, capsys, monkeypatch):
    def full(*_, **__):
        raise OSError(
            "[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"
        )

    monkeypatch.setattr("clinveil.cli.commands.inspect.count_all", full)
    assert "no space left on the disk" in refused(capsys, "inspect", notes, code=5)


def test_a_file_of_no_words_to_keep_is_refused(notes, capsys, tmp_path):
    (tmp_path / "keep.txt").write_text("\n")
    assert "keep.txt: contains no words" in refused(
        capsys,
        "release",
        notes,
        "--as",
        "obfuscated",
        "-o",
        "out",
        "--set",
        "channel.keep_words=keep.txt",
    )


@pytest.mark.parametrize(
    ("toml", "key"),
    [
        ("workers = 2.0", "workers"),
        ("workers = true", "workers"),
        ('workers = "2"', "workers"),
        ("workers = -1", "workers"),
        ("spans = 1", "spans"),
        ("markov = true", "markov"),
        ('label = "x"', "label"),
        ("keep = [1]", "keep"),
        ("[notes]\nencoding = 3", "notes.encoding"),
        ("[notes.text]\na = 1", "notes.text"),
        ("[channel.n]\nlow = 3", "channel"),
        ("[vectors]\ndim = 5", "vectors"),
    ],
)
def test_a_value_of_the_wrong_kind_names_its_key(notes, capsys, tmp_path, toml, key):
    (tmp_path / "c.toml").write_text(toml)
    line = refused(capsys, "deidentify", notes, "-o", "out.parquet", "--config", "c.toml")
    assert key.replace("_", "-") in line.replace("_", "-")


def test_a_table_is_no_range_and_a_key_that_a_command_does_not_use_is_refused(
    notes, capsys, tmp_path
):
    (tmp_path / "c.toml").write_text("[channel.n]\nlow = 3\nhigh = 14")
    assert "channel.n: a value" in refused(
        capsys, "release", notes, "--as", "obfuscated", "-o", "out", "--config", "c.toml"
    )
    (tmp_path / "c.toml").write_text('keep = ["raw"]')
    assert "this command has no setting keep" in refused(
        capsys, "embed", notes, "-o", "out", "--config", "c.toml"
    )


def test_values_of_the_right_kind_are_taken(notes, tmp_path):
    (tmp_path / "c.toml").write_text(
        'workers = 1\nkeep = ["größe"]\nquiet = true\n[notes]\nmax_note_bytes = 1000\n'
        '[identifiers]\npatients = "p"\n'
    )
    assert (
        main(["deidentify", notes, "-o", "out.parquet", "--config", "c.toml"]) == 3
    )  # there is no such p


def test_a_column_of_bytes_finds_no_place_in_csv(notes, capsys):
    flags = ("--keep", "raw", "--workers", "1", "--set", "identifiers.mode=tag")
    line = refused(capsys, "deidentify", notes, "-o", "out.csv", *flags, code=3)
    assert "raw: a column of bytes" in line


def command(*arguments, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "clinveil", *arguments], stdout=-1, stderr=-1, **more
    )


def test_output_that_the_terminal_cannot_show_is_spelt_out(notes):
    with command("inspect", notes, env={**os.environ, "PYTHONIOENCODING": "ascii"}) as ran:
        out, error = ran.communicate()
    assert ran.returncode == 0 and rb"gr\xf6\xdfe" in out and b"internal" not in error


def test_a_reader_who_stops_reading_is_no_error(notes):
    with command("inspect", notes) as ran:
        ran.stdout.close()
        said = ran.stderr.read()
    assert ran.returncode == 141
    assert [line for line in said.splitlines() if b"no patient column" not in line] == []
