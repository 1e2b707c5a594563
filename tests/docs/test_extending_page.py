"""The attack of `docs/extending.md` in a distribution of its own, and its detector as a member:
commands use them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = ("first_words", "badges")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with notes, and in `site` a distribution of two modules."""
    desk = tmp_path_factory.mktemp("desk")
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    site = desk / "site"
    info = site / "more-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: more\nVersion: 1.0\n")
    for name, block in zip(MODULES, blocks, strict=True):
        (site / f"{name}.py").write_text(block, encoding="utf-8")
    entry = "[clinveil.attacks]\nfirst-words = first_words:FirstWords\n"
    (info / "entry_points.txt").write_text(entry)
    notes = [
        f'{{"note_id": {i}, "text": "Badge # B-2041{i % 10} seen by nurse today with pain"}}'
        for i in range(60)
    ]
    (desk / "notes.jsonl").write_text("\n".join(notes) + "\n")
    return desk


def clinveil(desk, *arguments):
    path = [
        str(desk / "site"),
        str(ROOT / "src"),
        str(ROOT / "tests"),
        os.environ.get("PYTHONPATH", ""),
    ]
    program = (
        "import sys, small_attacks; from badges import BADGES;"
        " from clinveil.phi.detection import finder; from clinveil.cli.entry import main;"
        " finder.DETECTORS = (*finder.DETECTORS, BADGES);"
        " sys.exit(main(sys.argv[1:]))"
    )
    line = [sys.executable, "-c", program, *arguments]
    path = os.pathsep.join(path)
    done = subprocess.run(
        line, cwd=desk, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode in (0, 4), done.stderr
    return done.stdout + done.stderr


def test_the_command_line_knows_them(desk):
    assert "first-words" in clinveil(desk, "attack", "--help")
    assert "begin as their source does" in clinveil(desk, "attack", "first-words", "--help")


def test_the_detector_works(desk):
    clinveil(
        desk,
        "deidentify",
        "notes.jsonl",
        "-o",
        "d.jsonl",
        "--set",
        "identifiers.mode=tag",
        "--seed",
        "1",
    )
    assert all(
        "B-2041" not in line and "[ID]" in line
        for line in (desk / "d.jsonl").read_text().splitlines()
    )


def test_a_release_is_measured_by_the_attack_and_the_report_has_its_text(desk):
    small = [
        word
        for key in ("vectors.epochs=1", "vectors.window=5", "vectors.dim=8")
        for word in ("--set", key)
    ]
    output = clinveil(
        desk,
        "release",
        "notes.jsonl",
        "--as",
        "obfuscated",
        "-o",
        "out",
        "--min-patients",
        "2",
        "--set",
        "channel.n=2",
        *small,
    )
    page = desk / "out" / "vault" / "report.html"
    assert page.exists(), output
    text = page.read_text(encoding="utf-8")
    assert "Notes with unchanged first words" in text
    assert "How many released notes begin with the words of their source?" in text
    assert "the note can be found in the release" in text
