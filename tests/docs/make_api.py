"""Write `docs/api.md` from the docstrings: `python tests/docs/make_api.py`; a test compares the
page with the code.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import clinveil
from clinveil.core import first_paragraph
from clinveil.report.measures import catalogue

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
HEAD = """# Python API

*Generated from the docstrings by `python tests/docs/make_api.py`; the examples run in the tests.*

`import clinveil` is the only import needed. Functions take a path, a table (pandas, polars, Arrow),
a series of texts or a list of strings, and return the same type. `clinveil.attack` and
`clinveil.evaluate` contain the attacks and utility measures; `attack.run` runs any registered
attack. They return a list of `Finding`s, which `clinveil.to_frame` converts into a table. Invalid
input raises `clinveil.InputError`; an invalid call raises `clinveil.UsageError`.
"""


def page() -> str:
    """Return the complete page."""
    objects = [(name, getattr(clinveil, name)) for name in clinveil.__all__]
    functions = [
        (f"clinveil.{name}", thing) for name, thing in objects if inspect.isfunction(thing)
    ]
    classes = [(f"clinveil.{name}", thing) for name, thing in objects if inspect.isclass(thing)]
    namespaces = [
        (f"clinveil.{name}", thing) for name, thing in objects if isinstance(thing, ModuleType)
    ]
    parts = [HEAD, "## Functions", *(entry(*item) for item in functions)]
    for name, module in namespaces:
        members = [(f"{name}.{member}", getattr(module, member)) for member in dir(module)]
        parts += [f"## `{name}`", text(module), *(entry(*item) for item in members)]
    parts += ["## Measures", measures(), "## Classes", *(entry(*item) for item in classes)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def measures() -> str:
    """Return the table of all measures; an entry also describes the measures that begin with its
    name.
    """
    rows = [
        f"| `{name}` | {text.title} | {text.asked} |"
        for name, text in sorted(catalogue().items())
        if "." in name
    ]
    head = [
        "`Finding.measure` is one of these names, or begins with one (`attack.inversion_rare`)."
    ]
    return "\n".join([*head, "", "| measure | title | question |", "| --- | --- | --- |", *rows])


def entry(name: str, thing: Any) -> str:
    """Return one function or class: signature, docstring, and the public methods of a class."""
    lines = [
        f"### `{name}`",
        "```py",
        signature(name.rpartition(".")[2], thing),
        "```",
        text(thing),
    ]
    if inspect.isclass(thing):
        lines += [
            f"- `.{name}{short(method)}`: {first_line(method)}" for name, method in methods(thing)
        ]
    return "\n".join(lines)


def signature(name: str, thing: Any) -> str:
    """Return the call, one argument per line if it is long."""
    try:
        call = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    plain = _unquoted(f"{name}{call}")
    if len(plain) <= 100:
        return plain
    inner = ",\n".join(f"    {parameter}" for parameter in _stars(call))
    end = "" if call.return_annotation is call.empty else f" -> {call.return_annotation}"
    return _unquoted(f"{name}(\n{inner},\n){end}")


def _unquoted(call: str) -> str:
    """Remove the quotes of annotations, and show a function that is a default as `...`."""
    call = re.sub(
        r"<function [^>]*>[^>]* at 0x[0-9a-f]+>|<function \S+ at 0x[0-9a-f]+>", "...", call
    )
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", call)


def _stars(call: inspect.Signature) -> list[str]:
    listed = []
    starred = False
    for parameter in call.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            listed.append("*")
            starred = True
        starred |= parameter.kind is parameter.VAR_POSITIONAL
        listed.append(str(parameter))
    return listed


def methods(thing: type) -> list[tuple[str, Any]]:
    """Return public methods and properties of clinveil's classes, with a docstring."""
    bases = [base for base in thing.__mro__ if base.__module__.startswith("clinveil")]
    members = {name: member for base in bases for name, member in vars(base).items()}
    public = [
        (name, getattr(member, "__func__", member))
        for name, member in members.items()
        if name[0] != "_"
    ]
    return [
        (n, m)
        for n, m in public
        if (inspect.isfunction(m) or isinstance(m, property)) and m.__doc__
    ]


def short(method: Any) -> str:
    """Return the arguments of a method, without annotations."""
    if isinstance(method, property):
        return ""
    names = [name for name in inspect.signature(method).parameters if name not in ("self", "cls")]
    return f"({', '.join(names)})"


def first_line(method: Any) -> str:
    """Return the first line of a docstring."""
    return first_paragraph(inspect.getdoc(method))


def text(thing: Any) -> str:
    """Return a docstring as Markdown: sections become lists, examples become code."""
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
