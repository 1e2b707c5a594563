"""There is no default kind of release: it is named, or asked for in a terminal."""

from __future__ import annotations

import io
import sys

import pytest

import clinveil
from clinveil.cli import main
from clinveil.core import UsageError, load_settings
from clinveil.releases import DESCRIPTIONS, PRODUCERS, ReleaseSettings

TEXT = "The patient was well and went home after the visit with no pain in the chest. "
LINES = ["A release has no default kind:", *(f"  {name}" for name in DESCRIPTIONS)]


@pytest.fixture
def notes(tmp_path):
    rows = [f'n{i},p{i % 60},"{TEXT}{"abcdefgh"[i % 8]}"' for i in range(120)]
    path = tmp_path / "notes.csv"
    path.write_text("note_id,patient_id,text\n" + "\n".join(rows) + "\n")
    return path


class Terminal(io.StringIO):
    """Input that is typed."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def typed(monkeypatch):
    """Run a command line in a terminal, with typed lines."""

    def run(arguments, *lines):
        monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{line}\n" for line in lines)))
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        return main(arguments)

    return run


def starts(lines, expected):
    return len(lines) == len(expected) and all(map(str.startswith, lines, expected))


def test_every_kind_is_described_in_one_line():
    assert {*DESCRIPTIONS} == {*PRODUCERS.names()}
    assert all(len(f"  {name:<12}  {text}") <= 100 for name, text in DESCRIPTIONS.items())


@pytest.mark.parametrize("more", [[], ["-o", "out"]])
def test_outside_of_a_terminal_it_is_an_error_with_the_kinds(notes, more, capsys, tmp_path):
    more = [word.replace("out", str(tmp_path / "out")) for word in more]
    assert main(["release", str(notes), *more]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert starts(lines, [*LINES, "clinveil: no kind of release (pass --as KIND)"])
    assert [path.name for path in tmp_path.iterdir()] == ["notes.csv"]


def test_quiet_is_never_asked(notes, typed, capsys):
    assert typed(["release", str(notes), "-q"], "deidentified") == 2
    assert "pass --as KIND" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        (["deidentified"], "deidentified"),
        (["", "x", "Obf"], "obfuscated"),
        (["s"], "synthetic"),
    ],
)
def test_in_a_terminal_it_is_asked_for(answers, kind, notes, typed, capsys):
    assert typed(["release", str(notes)], *answers) == 0
    captured = capsys.readouterr()
    assert f"kind {kind}\n" in captured.out
    assert starts(captured.err.splitlines()[:4], LINES)


def test_no_answer_is_an_interruption(notes, typed):
    assert typed(["release", str(notes)]) == 130


def test_a_setting_of_another_kind_is_refused_when_the_kind_is_known(notes, typed, capsys):
    assert typed(["release", str(notes), "--set", "channel.n=5"], "deidentified") == 2
    expected = "channel.n applies to kind obfuscated, not to kind deidentified"
    assert expected in capsys.readouterr().err


def test_a_file_may_name_it(notes, tmp_path, capsys):
    (tmp_path / "c.toml").write_text('kind = "deidentified"\n')
    assert main(["release", str(notes), "--config", str(tmp_path / "c.toml")]) == 0
    assert capsys.readouterr().out.startswith("kind deidentified\n")
    assert main(["release", str(notes), "--config", "strict"]) == 0
    assert capsys.readouterr().out.startswith("kind obfuscated\n")


def test_python_names_the_argument(tmp_path):
    with pytest.raises(UsageError) as caught:
        clinveil.release([TEXT] * 60, tmp_path / "out")
    line = str(caught.value)
    assert "no kind of release is chosen" in line and all(name in line for name in DESCRIPTIONS)
    assert "--" not in line and not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match="one of obfuscated"):
        clinveil.release([TEXT] * 60, tmp_path / "out", kind="readable")


def test_the_empty_kind_is_no_kind():
    assert load_settings(ReleaseSettings, {}).kind == ""
    assert load_settings(ReleaseSettings, {"kind": "synthetic"}).kind == "synthetic"
    with pytest.raises(UsageError, match="kind: one of"):
        load_settings(ReleaseSettings, {"kind": "other"})
