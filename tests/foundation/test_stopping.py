"""An interruption that a foreign callback swallows is still heeded before anything becomes
final.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys

import pytest

from clinveil.cli import main

SWALLOWED = """
import ctypes, os, signal, sys
from pathlib import Path
from clinveil.core.atomic_files import atomic
from clinveil.core.errors import install_signal_handlers
install_signal_handlers()
CALLBACK = ctypes.CFUNCTYPE(None)
with atomic(Path("out.txt")) as part:
    part.write_text("not final")
    CALLBACK(lambda: os.kill(os.getpid(), getattr(signal, sys.argv[1])))()
    print("went on", flush=True)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_swallowed_signal_publishes_nothing(tmp_path, name):
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWED, name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "went on" in done.stdout  # the callback did swallow it
    assert done.returncode != 0
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")
    assert "Exception ignored" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_cut_file_is_no_interruption(tmp_path, monkeypatch, capsys):
    def cut(*args, **kwargs):
        raise EOFError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("clinveil.corpus.demo.private_folder", cut)
    assert main(["demo", "--notes-only", "-o", "x"]) == 1
    assert "internal error: EOFError" in capsys.readouterr().err


def test_the_usual_signal_is_an_interruption_too(tmp_path):
    code = (
        "from clinveil.core.errors import install_signal_handlers; install_signal_handlers();"
        " import time; "
    )
    code += "print('ready', flush=True); time.sleep(60)"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGHUP)
    assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]


@pytest.mark.parametrize("there", ["notes", "folder", "nowhere"])
def test_findings_never_replace_what_is_no_findings(tmp_path, capsys, there):
    target = tmp_path / "notes.csv"
    if there == "notes":
        target.write_text("note_id,text\n1,quiet\n")
    elif there == "folder":
        target.mkdir()
    else:
        target = tmp_path / "gone" / "findings.json"
    assert (
        main(["attack", "copies", "x", "--training", "y", "--held-out", "z", "--json", str(target)])
        == 2
    )
    assert "--json" in capsys.readouterr().err or there != "nowhere"
    if there == "notes":
        assert target.read_text() == "note_id,text\n1,quiet\n"


def test_findings_may_replace_findings(tmp_path):
    from clinveil.core import write_findings

    (tmp_path / "notes.csv").write_text("note_id,text\n1,quiet night with little pain\n")
    (tmp_path / "other.csv").write_text("note_id,text\n2,loud morning with much cough\n")
    write_findings(tmp_path / "f.json", "attack copies", [], seed=1)
    sides = shlex.split(
        f"--training {tmp_path / 'notes.csv'} --held-out {tmp_path / 'other.csv'} --seed 1"
    )
    assert (
        main(
            [
                "attack",
                "copies",
                str(tmp_path / "notes.csv"),
                *sides,
                "--json",
                str(tmp_path / "f.json"),
            ]
        )
        == 0
    )
    assert json.loads((tmp_path / "f.json").read_text())["findings"]
