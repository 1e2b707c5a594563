"""Lists all that the command line promises, and compares two listings, so that a redesign loses nothing.

`python tests/inventory.py list` prints JSON of the tree that PYTHONPATH names: commands with their arguments, options,
defaults and choices, TOML keys, measures, names of output files, exit codes and what `import clinveil` offers.
`python tests/inventory.py compare BEFORE.json AFTER.json --renamed FILE` prints what is missing or new; it exits with
1 where something is missing that FILE (old name -> [new name or "" for taken away, reason]) does not name.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

APP_MODULES = ("clinveil.cli.main", "clinveil.cli", "clinveil.main", "clinveil.cli.app")
ROOMS = "attack|channel|check|corpus|gate|lm|measure|phi|release|study|synthesis|synthetic|utility|vectors"
MEASURE = re.compile(rf"(?:{ROOMS})\.[a-z{{][a-z0-9_.{{}}-]*")
FILE = re.compile(
    r"[\w{}.*-]*\.(?:arrow|bin|csv|gz|html|json|jsonl|key|log|md|npy|npz|parquet|safetensors|svg|toml|tsv|txt|vec|zst)"
)
SHELL = ("install_completion", "show_completion")  # Typer's own, on some commands by accident
PROBE, NOBODY = "probe.toml", "no_such_setting_at_all"


# ---------------------------------------------------------------- commands


def app_module() -> Any:
    """The module that holds the Typer app, wherever it has moved to."""
    import typer

    for name in APP_MODULES:
        with suppress(ImportError):
            module = importlib.import_module(name)
            if isinstance(getattr(module, "app", None), typer.Typer):
                return module
    raise SystemExit(f"no Typer app in any of {', '.join(APP_MODULES)}: add its module to APP_MODULES")


def commands(root: Any) -> Iterator[tuple[str, Any]]:
    """Every command that is no group, with its full path; lazy groups are made to import theirs."""
    yield from _below(root, "", None)


def _below(group: Any, path: str, parent: Any) -> Iterator[tuple[str, Any]]:
    context = type(group).context_class(group, info_name=path or "clinveil", parent=parent)
    yield path, group
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])
        full = f"{path} {name}".strip()
        if hasattr(command, "list_commands"):
            yield from _below(command, full, context)
        else:
            yield full, command


def listed_command(path: str, command: Any) -> dict[str, Any]:
    """Arguments and options of one command, and the keys that its --config takes."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name not in SHELL]
    return {
        "arguments": [
            {"name": p.name, "required": p.required, "nargs": p.nargs, "choices": _choices(p)} for p in arguments
        ],
        "options": {_main_flag(p): _option(p) for p in options},
        "toml": toml_keys(path, command),
    }


def _main_flag(option: Any) -> str:
    return max((*option.opts, *option.secondary_opts), key=lambda flag: (flag in option.opts, len(flag)))


def _option(option: Any) -> dict[str, Any]:
    shown = option.show_default if isinstance(option.show_default, str) else ""
    default = None if callable(option.default) else option.default
    return {
        "flags": sorted({*option.opts, *option.secondary_opts}),
        "default": shown or ("" if default in (None, (), []) else str(default)),
        "type": _type(option),
        "choices": _choices(option),
        "required": option.required,
        "repeatable": option.multiple,
        "hidden": option.hidden,
    }


def _annotation(parameter: Any) -> Any:
    """The Python type of a parameter, without the list or the None around it."""
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    while kind is not None and get_origin(kind) not in (None, Literal):
        kind = next(part for part in get_args(kind) if part is not type(None))
    return kind


def _type(parameter: Any) -> str:
    """What a parameter takes, in a word; for both of Typer's ways to say it."""
    kind = _annotation(parameter)
    if kind is None:
        return str(parameter.type.name)
    return "choice" if get_origin(kind) is Literal else str(getattr(kind, "__name__", kind))


def _choices(parameter: Any) -> list[str]:
    kind = _annotation(parameter)
    choices = get_args(kind) if kind is not None else getattr(parameter.type, "choices", ())
    return sorted(map(str, choices))


# ---------------------------------------------------------------- TOML keys, by asking the command itself


def toml_keys(path: str, command: Any) -> list[str]:
    """The names that --config takes: a key with a table as its value is refused otherwise than an unknown key."""
    if not any("--config" in p.opts for p in command.params):
        return []
    names = sorted({p.name for p in command.params if p.param_type_name == "option"} - {"config", "help"})
    with tempfile.TemporaryDirectory() as folder:
        unknown = _refusal(command, Path(folder), NOBODY)
        return [name for name in names if _refusal(command, Path(folder), name) != _of(unknown, name)]


def _of(unknown: str, name: str) -> str:
    """The refusal of an unknown key, as it would be for this name."""
    return unknown.replace(NOBODY, name).replace(_dashed(NOBODY), _dashed(name))


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _refusal(command: Any, folder: Path, key: str) -> str:
    """What the command says to a file with this key; no note is read, for there are none."""
    config = folder / PROBE
    config.write_text(f"{key} = {{}}\n", encoding="utf-8")
    line = ["--config", str(config)]
    for parameter in command.params:
        if parameter.required:
            given = str(folder / "none")
            line += [given] if parameter.param_type_name == "argument" else [parameter.opts[-1], given]
    try:
        command.main(line, prog_name="probe", standalone_mode=False)
    except Exception as error:  # noqa: BLE001  whatever it is, its text is the answer
        return str(error).partition(" (")[0]  # without the remedy, which may name a setting like it
    raise SystemExit(f"a command took {key} = {{}} from its --config without a word")


# ---------------------------------------------------------------- what stands in the sources


Nodes = list[ast.AST]


def parsed(source: Path) -> dict[Path, Nodes]:
    """The strings, calls, assignments and returns of all modules of a source tree."""
    kinds = (ast.JoinedStr, ast.Constant, ast.Call, ast.Assign, ast.Return)
    found: dict[Path, Nodes] = {}
    for path in sorted(source.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found[path] = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    return found


def strings(nodes: Nodes) -> Iterator[str]:
    """Every string of a module, f-strings with {} for what is filled in; parts of f-strings are none of their own."""
    made = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    inside = {id(part) for node in made for part in node.values}
    for node in made:
        yield "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def measure_texts(source: Path) -> dict[str, list[str]]:
    """The measures that the report knows, with the labels of their rows: tables named room.measure of any TOML file."""
    found: dict[str, list[str]] = {}
    for path in sorted(source.rglob("*.toml")):
        for name, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if MEASURE.fullmatch(name) and isinstance(entry, dict):
                found[name] = sorted(entry.get("rows", {}))
    return found


def exit_codes(modules: dict[Path, Nodes], main: Path) -> list[int]:
    """Numbers set as exit_code, given to Exit, or returned by the app's own module."""
    found = {code for path, nodes in modules.items() for node in nodes for code in _codes(node, own=path == main)}
    return sorted(found - {0})


def _codes(node: ast.AST, *, own: bool) -> set[int]:
    values: list[ast.expr | None] = []
    if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "exit_code" for t in node.targets):
        values = [node.value]
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in ("Exit", "exit"):
        values = [*node.args]
    elif isinstance(node, ast.Return) and own:
        values = [node.value, *(node.value.args[-1:] if isinstance(node.value, ast.Call) else ())]
    return {v.value for v in values if isinstance(v, ast.Constant) and type(v.value) is int}


# ---------------------------------------------------------------- the listing


def listing() -> dict[str, Any]:
    """All of the tree that Python imports clinveil from."""
    import typer

    import clinveil

    module = app_module()
    source = Path(clinveil.__file__).parent
    modules = parsed(source)
    known = measure_texts(source)
    said = {text for nodes in modules.values() for text in strings(nodes)}
    own = {path.name for path in source.rglob("*") if path.is_file()}
    return {
        "commands": {path: listed_command(path, c) for path, c in commands(typer.main.get_command(module.app))},
        "measures": known,
        "measure_strings": sorted({text for text in said if MEASURE.fullmatch(text)} - own),
        "files": sorted({text for text in said if FILE.fullmatch(text)} - own),
        "exit_codes": exit_codes(modules, Path(module.__file__)),
        "python": sorted(getattr(clinveil, "__all__", ())),
    }


def flat(found: dict[str, Any]) -> set[str]:
    """A listing as a set of lines, one a promise."""
    lines = {f"exit {code}" for code in found["exit_codes"]}
    lines |= {f"python {name}" for name in found["python"]}
    lines |= {f"file {name}" for name in found["files"]}
    lines |= {f"measure {name}" for name in found["measures"]}
    lines |= {f"row {name} {row}" for name, rows in found["measures"].items() for row in rows}
    lines |= {f"string {name}" for name in found["measure_strings"]}
    for path, command in found["commands"].items():
        lines |= set(_lines(path or "clinveil", command))
    return lines


def _lines(path: str, command: dict[str, Any]) -> Iterator[str]:
    yield f"command {path}"
    yield from (f"toml {path} {key}" for key in command["toml"])
    for place, argument in enumerate(command["arguments"], 1):
        need = "required" if argument["required"] else "optional"
        yield f"argument {path} {place} {need} nargs {argument['nargs']}"
        yield from (f"choice {path} {place} {choice}" for choice in argument["choices"])
    for name, option in command["options"].items():
        yield from (f"option {path} {flag}" for flag in option["flags"])
        yield f"default {path} {name} = {option['default']}"
        yield f"takes {path} {name} {option['type']}{' repeatable' * option['repeatable']}"
        yield from (f"choice {path} {name} {choice}" for choice in option["choices"])


def missing(before: dict[str, Any], after: dict[str, Any], renamed: dict[str, list[str]]) -> list[str]:
    """What the second listing lacks and the renamed file does not explain, or explains by what is not there."""
    old, new = flat(before), flat(after)
    said = re.compile("|".join(_pattern(name) for name in _made(new)) or r"(?!)")
    lost = {line for line in old - new if not said.fullmatch(line)}
    gone = tuple(name.partition(" ")[2] + " " for name in renamed if name.startswith("command "))
    lost = {line for line in lost if not gone or not f"{line.partition(' ')[2]} ".startswith(gone) or line in renamed}
    lost = {line for line in lost if line not in renamed or (renamed[line][0] and renamed[line][0] not in new)}
    return sorted(lost | {f"{line} (in the renamed file without a reason)" for line in _silent(renamed)})


def _made(lines: set[str]) -> set[str]:
    """Measures and files put together at run time; those that fix nothing but the room would match all."""
    return {n for n in lines if re.match(r"(string [a-z]+\.|file )[\w.-]*[a-z][\w.-]*\{\}", n)}


def _pattern(line: str) -> str:
    """What a string with {} in it can become; {} itself too, where the other side fills in something else."""
    return re.escape(line).replace(r"\{\}", r"[\w{}.-]+")


def _silent(renamed: dict[str, list[str]]) -> list[str]:
    return [old for old, value in renamed.items() if len(value) != 2 or not value[1].strip()]


def _read(path: str) -> dict[str, Any]:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _compare(options: argparse.Namespace) -> int:
    before, after = _read(options.before), _read(options.after)
    lost = missing(before, after, _read(options.renamed) if options.renamed else {})
    for line in lost:
        _say(f"missing  {line}")
    for line in sorted(flat(after) - flat(before)):
        _say(f"new      {line}")
    _say(f"{len(lost)} missing of {len(flat(before))}")
    return 1 if lost else 0


def main(given: list[str] | None = None) -> int:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    which = parser.add_subparsers(dest="what", required=True)
    which.add_parser("list", help="print the listing of the tree on PYTHONPATH")
    compared = which.add_parser("compare", help="compare two listings")
    compared.add_argument("before")
    compared.add_argument("after")
    compared.add_argument("--renamed", help="JSON: old line -> [new line, reason]")
    options = parser.parse_args(given)
    if options.what == "compare":
        return _compare(options)
    _say(json.dumps(listing(), indent=1, sort_keys=True, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
