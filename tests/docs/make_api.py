"""`docs/api.md` from the docstrings: `python tests/docs/make_api.py` writes it, a test holds it to the code."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import clinveil

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
HEAD = """# The library

*Made from the docstrings by `python tests/docs/make_api.py`; its examples run in the tests.*

`import clinveil` is all that is imported. Verbs take a path, a frame (pandas, polars, Arrow), a series of texts or a
list of strings, and give the same kind back; `clinveil.attack` and `clinveil.evaluate` hold the usual
attacks and utility tests (`attack.run` tries any that is registered), and return a list of `Finding`s, which
`clinveil.to_frame` turns into a frame.
What is wrong with the input raises `clinveil.InputError`; what is wrong with the call, `clinveil.UsageError`.
"""


def page() -> str:
    """The whole page."""
    objects = [(name, getattr(clinveil, name)) for name in clinveil.__all__]
    verbs = [(f"clinveil.{name}", thing) for name, thing in objects if inspect.isfunction(thing)]
    nouns = [(f"clinveil.{name}", thing) for name, thing in objects if inspect.isclass(thing)]
    rooms = [(f"clinveil.{name}", thing) for name, thing in objects if isinstance(thing, ModuleType)]
    parts = [HEAD, "## Verbs", *(entry(*one) for one in verbs)]
    for name, module in rooms:
        inside = [(f"{name}.{each}", getattr(module, each)) for each in module.__all__]
        parts += [f"## `{name}`", text(module), *(entry(*one) for one in inside)]
    parts += ["## Nouns", *(entry(*one) for one in nouns)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def entry(name: str, thing: Any) -> str:
    """One function or class: its signature, its docstring, and the public methods of a class."""
    lines = [f"### `{name}`", "```py", signature(name.rpartition(".")[2], thing), "```", text(thing)]
    if inspect.isclass(thing):
        lines += [f"- `.{method}{short(one)}`: {first_line(one)}" for method, one in methods(thing)]
    return "\n".join(lines)


def signature(name: str, thing: Any) -> str:
    """The call, an argument a line where it is long."""
    try:
        said = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    plain = _unquoted(f"{name}{said}")
    if len(plain) <= 100:
        return plain
    inner = ",\n".join(f"    {one}" for one in _stars(said))
    end = "" if said.return_annotation is said.empty else f" -> {said.return_annotation}"
    return _unquoted(f"{name}(\n{inner},\n){end}")


def _unquoted(said: str) -> str:
    """Annotations are strings until they are asked for; a default that is a function has no name to show."""
    said = re.sub(r"<function [^>]*>[^>]* at 0x[0-9a-f]+>|<function \S+ at 0x[0-9a-f]+>", "...", said)
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", said)


def _stars(said: inspect.Signature) -> list[str]:
    listed, starred = [], False
    for one in said.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not starred:
            listed.append("*")
            starred = True
        starred |= one.kind is one.VAR_POSITIONAL
        listed.append(str(one))
    return listed


def methods(thing: type) -> list[tuple[str, Any]]:
    """Public methods and properties that are the class's own, with a docstring."""
    bases = [base for base in thing.__mro__ if base.__module__.startswith("clinveil")]
    own = {name: one for base in bases for name, one in vars(base).items()}
    found = [(name, getattr(one, "__func__", one)) for name, one in own.items() if not name.startswith("_")]
    return [(n, one) for n, one in found if (inspect.isfunction(one) or isinstance(one, property)) and one.__doc__]


def short(method: Any) -> str:
    """The arguments of a method, without annotations."""
    if isinstance(method, property):
        return ""
    names = [name for name in inspect.signature(method).parameters if name not in ("self", "cls")]
    return f"({', '.join(names)})"


def first_line(method: Any) -> str:
    """What it does."""
    return (inspect.getdoc(method) or "").partition("\n")[0]


def text(thing: Any) -> str:
    """A docstring as Markdown: sections become lists of their lines, examples become code."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    out: list[str] = []
    example = False
    for line in lines:
        if line.startswith(">>>") and not example:
            out += ["```pycon", line]
            example = True
        elif example and not line.strip():
            out += ["```", ""]
            example = False
        elif not example and line.startswith("    ") and not line.startswith("     "):
            out.append(f"- {line.strip()}")
        elif not example and line.startswith("     "):
            out.append(f"  {line.strip()}")
        elif not example and line.endswith(":") and line[:1].isupper():
            out += [f"**{line}**", ""]
        else:
            out.append(line)
    return "\n".join(out + ["```"] * example)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
