"""Write `docs/packages.md` from the façades: `python tests/docs/make_package_pages.py`; a test
compares the page with the code.
"""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from make_packages import layers

from clinveil.core import first_paragraph

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "packages.md"
HEAD = """# Packages

*Generated from the façades by `python tests/docs/make_package_pages.py`.*

For contributors: what each package exports, top layer first. Code outside a package imports only
these names, as in `from clinveil.core import Finding`.
"""


def page() -> str:
    """Return the complete page."""
    packages = [package for layer in layers() for package in layer]
    return "\n\n".join([HEAD.rstrip("\n"), *(section(package) for package in packages)]) + "\n"


def section(package: str) -> str:
    """Return heading, docstring and exported names of a package, by module."""
    facade = import_module(f"clinveil.{package}")
    lines = [f"## {package}", "", inspect.cleandoc(facade.__doc__ or "")]
    for module, names in exported(package).items():
        described = [line(name, getattr(facade, name)) for name in names]
        constants = [name for name, text in zip(names, described, strict=True) if not text]
        lines += ["", f"`{module}`" if module else "Modules", ""]
        lines += [text for text in described if text]
        if constants:
            lines.append("- " + ", ".join(f"`{name}`" for name in constants))
    return "\n".join(lines)


def exported(package: str) -> dict[str, list[str]]:
    """Return module -> names, from the stub of a façade."""
    stub = ROOT / "src" / "clinveil" / package / "__init__.pyi"
    modules: dict[str, list[str]] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names = modules.setdefault(node.module or "", [])
            names.extend(alias.name for alias in node.names)
    return modules


def line(name: str, thing: Any) -> str:
    """Return the line of a function, class or module; "" for a value."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing) or isinstance(thing, ModuleType)):
        return ""
    summary = first_paragraph(thing.__doc__)
    return f"- `{name}`: {summary}" if summary else f"- `{name}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
