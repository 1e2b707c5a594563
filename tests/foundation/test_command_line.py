"""The surface of the command line: few flags, a `--set` for everything else, suggestions,
`init-config`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from clinveil.cli import main
from clinveil.cli.commands.init_config import config_text
from clinveil.cli.groups import COMMANDS, Group
from clinveil.core import UsageError, load_settings
from clinveil.releases import ReleaseSettings


def leaves(members=COMMANDS, group=""):
    for name, command in members:
        if isinstance(command, Group):
            yield from leaves(command.members, f"{group}{name} ")
        else:
            yield f"{group}{name}", command


LEAVES = dict(leaves())
WITH_FILE = [name for name, command in LEAVES.items() if command.settings and command.takes_config]


def options(command):
    return [
        p for p in command.parser().params if p.param_type_name == "option" and p.name != "help"
    ]


def test_the_surface_is_small():
    budget = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["tool"][
        "clinveil-budget"
    ]
    assert len(COMMANDS.names()) <= budget["commands"]
    assert sum(len(options(command)) for command in LEAVES.values()) <= budget["flags"]
    assert len(options(LEAVES["release"])) <= budget["release_flags"]


def test_the_help_of_release_has_titled_panels(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["release", "--help"]) == 0
    page = capsys.readouterr().out
    assert len(page.splitlines()) <= 100
    assert all(f" {title} " in page for title in ("Input", "What leaves", "Protection", "Running"))


def test_every_help_text_fits_one_line():
    long = {
        (name, p.name)
        for name, command in LEAVES.items()
        for p in options(command)
        if len(p.help or "") > 80
    }
    assert not long


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            ["release", "x", "--as", "deidentifed"],
            "Invalid value for '--as' / '--kind': 'deidentifed' is",
        ),
        (["relese"], "there is no command `relese` (did you mean `release`?)"),
        (
            ["release", "x", "--dim", "8"],
            "--dim is a setting of release, not a flag (use --set vectors.dim=8)",
        ),
        (
            ["release", "x", "--dim=8"],
            "--dim is a setting of release, not a flag (use --set vectors.dim=8)",
        ),
        (
            ["release", "x", "--no-phi"],
            "--no-phi is a setting of release, not a flag (use --set phi=false)",
        ),
        (
            ["release", "x", "-n", "5"],
            "-n is a setting of release, not a flag (use --set channel.n=5)",
        ),
        (
            ["release", "x", "--pateint", "a"],
            "release has no option --pateint (did you mean --patient?)",
        ),
        (
            ["release", "x", "--epoch", "3"],
            "release has no option --epoch (did you mean --set lm.epochs?)",
        ),
        (
            ["release", "x", "--set", "dimm=3"],
            "--set: this command has no setting dimm (did you mean vectors.dim?)",
        ),
    ],
)
def test_mistakes_are_answered_with_a_suggestion(capsys, line, message):
    assert main(line) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"clinveil: {message}")
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", WITH_FILE)
def test_the_file_of_a_command_is_accepted_and_changes_nothing(name, tmp_path):
    model = LEAVES[name].settings
    path = tmp_path / "c.toml"
    path.write_text(config_text(name, model))
    assert load_settings(model, {}, path) == load_settings(model, {})
    text = path.read_text()
    assert all(f"# {setting.last} = " in text for setting in model.declared().values())


def test_each_line_of_the_file_of_a_release_is_accepted(tmp_path):
    section = ""
    path = tmp_path / "c.toml"
    for line in config_text("release", ReleaseSettings).splitlines():
        section = f"{line}\n" if line.startswith("[") else section
        if " = " not in line or line.endswith("no default"):
            continue
        text = section + line.removeprefix("# ")
        path.write_text(text)
        tomllib.loads(text)
        try:
            assert load_settings(ReleaseSettings, {}, path) == ReleaseSettings(), line
        except UsageError as error:
            assert "applies to kind" in str(error) or "requires" in str(error), line


def test_init_config_writes_a_file_and_does_not_replace_it(tmp_path, capsys):
    assert main(["init-config"]) == 0
    assert capsys.readouterr().out == config_text("release", ReleaseSettings)
    out = str(tmp_path / "c.toml")
    assert main(["init-config", "attack", "linkage", "-o", out]) == 0
    assert "--set KEY=VALUE" in (tmp_path / "c.toml").read_text()
    assert main(["init-config", "embed", "-o", out]) == 2
    assert main(["init-config", "embed", "-o", out, "--force"]) == 0
    assert (
        main(["init-config", "study"])
        == main(["init-config", "report"])
        == main(["init-config", "nothing"])
        == 2
    )


def test_completion_lists_commands_and_flags(monkeypatch, capsys):
    monkeypatch.setenv("_CLINVEIL_COMPLETE", "complete_bash")
    for words, expected in (("clinveil rel", "release"), ("clinveil release --conf", "--config")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        main([])
        assert expected in capsys.readouterr().out.split()
