"""The files of `docs/extending.md`, in a distribution of their own: entry points find them,
commands use them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GROUPS = {"first_words": "attacks", "badges": "detectors"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with notes, and in `site` a distribution of three modules."""
    desk = tmp_path_factory.mktemp("desk")
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    site = desk / "site"
    info = site / "more-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: more\nVersion: 1.0\n")
    lines = []
    for (name, kind), block in zip(GROUPS.items(), blocks, strict=True):
        (site / f"{name}.py").write_text(block, encoding="utf-8")
        thing = {"first_words": "FirstWords", "badges": "BADGES"}[name]
        lines.append(f"[clinveil.{kind}]\n{name.replace('_', '-')} = {name}:{thing}\n")
    (info / "entry_points.txt").write_text("\n".join(lines))
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
        "import sys, small_attacks; from clinveil.cli.entry import main;"
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
    clinveil(desk, "deidentify", "notes.jsonl", "-o", "d.jsonl", "--set", "mode=tag", "--seed", "1")
    assert all(
        "B-2041" not in line and "[ID]" in line
        for line in (desk / "d.jsonl").read_text().splitlines()
    )


def test_a_release_is_measured_by_the_attack_and_the_report_has_its_text(desk):
    small = [word for key in ("epochs=1", "window=5", "dim=8") for word in ("--set", key)]
    output = clinveil(
        desk, "release", "notes.jsonl", "-o", "out", "--min-patients", "2", "--set", "n=2", *small
    )
    page = desk / "out" / "vault" / "report.html"
    assert page.exists(), output
    text = page.read_text(encoding="utf-8")
    assert "Notes with unchanged first words" in text
    assert "How many released notes begin with the words of their source?" in text
    assert "the note can be found in the release" in text


@pytest.mark.slow
def test_in_the_tree_a_file_is_enough(tmp_path):
    """The same attack as a file of the package: a command, measured on every release, with its
    texts.
    """
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    block = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    (tmp_path / "src/clinveil/attacks/text/first_words.py").write_text(block, encoding="utf-8")
    code = "from clinveil.cli.entry import main; from clinveil.report.measures import find; "
    code += "from clinveil.attacks.attack import of_release; import sys; "
    code += "assert find('attack.first_words')[1].short == 'First words'; "
    code += "assert 'FirstWords' in [a.__name__ for a in of_release()]; "
    code += "sys.exit(main(['attack', 'first-words', '--help']))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    )
    assert done.returncode == 0
