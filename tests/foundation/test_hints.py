"""A hint is a command that works: every option in a hint exists, and hints that repair a run are
run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clinveil
from clinveil.cli import main
from clinveil.cli.groups import COMMANDS, Group
from clinveil.core import UsageError, load_settings

SOURCE = Path(clinveil.__file__).parent
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
SETTING = re.compile(r"--set ([a-z_.]+)=([^\s,;)]+)")
COMMAND_OF_OTHERS = re.compile(r"`(?!clinveil)[^`]*`")
VALUE = "VALUE"  # written for the parts of a message that are known only when it is raised


class Hint(NamedTuple):
    place: str
    text: str


def text_of(node: ast.expr | None) -> str:
    """The text of an expression; VALUE for what is inserted."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(value) or VALUE for value in node.values)
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    if isinstance(node, ast.IfExp):
        return f"{text_of(node.body)} {text_of(node.orelse)}"
    return ""


@cache
def hints() -> tuple[Hint, ...]:
    """All texts that are given as `hint=`, directly or through a variable of that name or
    constant.
    """
    return tuple(hint for path in sorted(SOURCE.rglob("*.py")) for hint in hints_of(path))


def hints_of(path: Path) -> Iterator[Hint]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    place = path.relative_to(SOURCE).as_posix()
    named: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    named.setdefault(target.id, []).append(text_of(node.value))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg == "hint":
                name = keyword.value.id if isinstance(keyword.value, ast.Name) else ""
                for text in named.get(name, [text_of(keyword.value)]):
                    yield Hint(place, COMMAND_OF_OTHERS.sub("", text))


@cache
def commands() -> dict[str, Any]:
    """All commands by name."""
    found: dict[str, Any] = {}
    for name, command in COMMANDS:
        if isinstance(command, Group):
            found |= {f"{name} {inner}": member for inner, member in command.members}
        else:
            found[name] = command
    return found


@cache
def options(name: str) -> frozenset[str]:
    """The options of a command."""
    parameters = commands()[name].parser().params
    flags = {flag for one in parameters for flag in one.opts + one.secondary_opts}
    return frozenset(flags | {"--help"})


def test_the_catalogue_is_not_empty() -> None:
    assert len(hints()) > 300
    assert sum("--" in hint.text for hint in hints()) > 100


@pytest.mark.parametrize(
    "hint", [hint for hint in hints() if OPTION.search(hint.text)], ids=lambda hint: hint.place
)
def test_every_option_of_a_hint_exists(hint: Hint) -> None:
    own = re.fullmatch(r"cli/commands/(.+)\.py", hint.place)
    name = own[1].replace("/", " ").replace("_", "-") if own else ""
    for option in OPTION.findall(hint.text):
        having = [command for command in commands() if f"--{option}" in options(command)]
        assert having, f"no command has --{option}"
        elsewhere = "clinveil " in hint.text  # the hint names another command
        assert name not in commands() or name in having or elsewhere, f"{name} has no --{option}"


@pytest.mark.parametrize(
    "hint", [hint for hint in hints() if SETTING.search(hint.text)], ids=lambda hint: hint.place
)
def test_every_setting_of_a_hint_is_accepted(hint: Hint) -> None:
    for key, value in SETTING.findall(hint.text):
        if VALUE in value or value.isupper():
            continue
        reading = [
            command
            for command in commands().values()
            if command.settings and takes(command.settings, key)
        ]
        assert reading, f"no command has the setting {key}"
        accepted = [
            command.name for command in reading if accepts(command.settings, f"{key}={value}")
        ]
        assert accepted, f"no command accepts {key}={value}"


def takes(settings: Any, key: str) -> bool:
    return key in settings.declared()


def accepts(settings: Any, assignment: str) -> bool:
    try:
        load_settings(settings, {}, sets=[assignment])
    except UsageError:
        return False
    return True


# --- hints that repair a run
# ---------------------------------------------------------------------------------------

TEXT = (
    "Seen by Dr. Müller; stable. "
    + "The patient was well and went home after the visit with no pain. " * 2
)


def table(n: int = 3, **more: list[str]) -> pa.Table:
    ids = [f"n{number}" for number in range(n)]
    return pa.table(
        {
            "note_id": ids,
            "patient_id": [f"p{number}" for number in range(n)],
            "text": [TEXT] * n,
            **more,
        }
    )


def as_csv(encoding: str, path: Path) -> Path:
    lines = ["note_id,patient_id,text", *(f'n{n},p{n},"{TEXT}"' for n in range(3))]
    path.write_bytes("\n".join(lines).encode(encoding))
    return path


def as_parquet(made: pa.Table, path: Path) -> Path:
    pq.write_table(made, path)
    return path


SPANISH = (
    "El paciente acude por dolor de espalda desde hace dos semanas. No tiene fiebre. Se recomienda"
    " reposo y calor local, y se cita en un mes."
)
CASES = {
    "encoding cp1252": (lambda at: as_csv("cp1252", at / "a.csv"), ("deidentify", "-o", "OUT"), 3),
    "encoding utf-16": (lambda at: as_csv("utf-16", at / "a.csv"), ("deidentify", "-o", "OUT"), 3),
    "encoding utf-16-le": (
        lambda at: as_csv("utf-16-le", at / "a.csv"),
        ("deidentify", "-o", "OUT"),
        3,
    ),
    "encoding of inspect": (lambda at: as_csv("cp1252", at / "a.csv"), ("inspect",), 3),
    "unknown encoding": (
        lambda at: as_csv("cp1252", at / "a.csv"),
        ("inspect", "--set", "notes.encoding=no"),
        2,
    ),
    "longer notes": (
        lambda at: as_parquet(
            pa.table({"note_id": ["1"], "text": ["pain " * 1000]}), at / "a.parquet"
        ),
        ("deidentify", "-o", "OUT", "--set", "notes.max_note_bytes=1000"),
        3,
    ),
    "language": (
        lambda at: as_parquet(pa.table({"note_id": ["1"], "text": [SPANISH]}), at / "a.parquet"),
        ("deidentify", "-o", "OUT"),
        3,
    ),
    "few patients": (
        lambda at: as_parquet(table(), at / "a.parquet"),
        ("release", "--as", "obfuscated"),
        3,
    ),
    "a setting typed as a flag": (
        lambda at: as_parquet(table(), at / "a.parquet"),
        ("deidentify", "-o", "OUT", "--propagate", "none"),
        2,
    ),
    "an existing output": (
        lambda at: as_parquet(table(), at / "a.parquet"),
        ("embed", "-o", "EXISTING", "--set", "vectors.dim=4"),
        2,
    ),
}
REPAIR = re.compile(r"--set [a-z_.]+=[^\s,;)]+|--force")


@pytest.mark.parametrize("name", CASES)
def test_a_hint_repairs_the_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, (command, *rest), status = CASES[name]
    notes = make(tmp_path)
    existing = tmp_path / "existing.parquet"
    if "EXISTING" in rest:
        assert (
            main(
                [
                    "embed",
                    str(notes),
                    "-o",
                    str(existing),
                    "--set",
                    "vectors.dim=4",
                    "--workers",
                    "1",
                    "-q",
                ]
            )
            == 0
        )
    places = {"OUT": str(tmp_path / "out.parquet"), "EXISTING": str(existing)}
    arguments = [command, str(notes), *(places.get(word, word) for word in rest)]
    capsys.readouterr()
    assert main(arguments) == status
    found = REPAIR.search(capsys.readouterr().err)
    assert found is not None
    if "--propagate" in arguments:  # the hint replaces the wrong option
        at = arguments.index("--propagate")
        del arguments[at : at + 2]
    assert main([*arguments, *found[0].split(" ")]) == 0
