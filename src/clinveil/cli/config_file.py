"""The file that `clinveil init-config` writes: every setting of a command, commented out, with its default."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo

from clinveil.core.settings import Settings, registry_of, sections

WIDTH = 100


def config_text(command: str, model: type[Settings], *, takes_config: bool = True) -> str:
    """Return the TOML file of a command's settings; `--config` accepts it as it is, and it changes nothing."""
    head = [f"# Settings of clinveil {command}, with their defaults."]
    if takes_config:
        head += ["# To change a setting, remove the # of its line and pass this file with --config.", "#"]
        head += ["# Settings of a section are also keys of --set: --set KEY=VALUE or --set SECTION.KEY=VALUE."]
    else:
        head += ["# To change a setting, pass --set KEY=VALUE."]
    return "\n".join([*head, *_lines(model)]) + "\n"


def _lines(model: type[Settings]) -> Iterator[str]:
    groups, tables = sections(model), sections(model, tables=True)
    defaults = model().flat()
    grouped = {name for kind in groups.values() for name in kind.flags()}
    for name, field in model.flags().items():
        if name not in grouped:
            yield from _setting(name, field, defaults[name])
    for title, kind in {**groups, **tables}.items():
        values = defaults[title] if title in tables else defaults
        yield from ("", f"[{title}]")
        for name, field in kind.flags().items():
            yield from _setting(name, field, values.get(name, field.default))


def _setting(name: str, field: FieldInfo, default: Any) -> Iterator[str]:
    registry = registry_of(field)
    names = f" One of {', '.join(registry.names())}." if registry else ""
    yield ""
    yield from (f"# {line}" for line in textwrap.wrap(f"{field.description}{names}", WIDTH - 2))
    yield f"# {name} = {_written(field.default if isinstance(default, dict) else default)}"


def _written(value: Any) -> str:
    """Return a value as TOML; an empty string for a setting without a default."""
    if value is None:
        return '""  # no default'
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    return json.dumps(str(value), ensure_ascii=False)
