"""Each setting declares what it affects; the hash of a run and the manifest follow from that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import ValidationError

from clinveil.cli.groups import COMMANDS, Group
from clinveil.core import run_hash
from clinveil.core.settings import declaration_of
from clinveil.releases import ReleaseSettings
from clinveil.releases.kinds import kinds_with
from clinveil.releases.record import public_settings

RELEASE = ReleaseSettings.declared()
SECRET = "qzsecretplace"  # part of every path
WITH = {  # settings without which another one is refused
    "channel.unknown": {"channel.background": 0.0},
    "executor.address": {"executor.on": "ray"},
    "executor.tasks": {"executor.on": "ray"},
}


def models(members=COMMANDS, prefix=""):
    for name, command in members:
        if isinstance(command, Group):
            yield from models(command.members, f"{prefix}{name} ")
        elif command.settings is not None:
            yield f"{prefix}{name}", command.settings


@pytest.mark.parametrize(("command", "model"), [*models()])
def test_every_setting_is_declared_and_a_path_is_secret_or_of_the_call(command, model):
    for one in model.declared().values():
        assert one.field.description, f"{command}: {one.name} was not made with `setting`"
        assert declaration_of(one.field) is one.declared
        if Path in parts_of(one.field.annotation):
            assert one.declared.secret == "path" or one.affects == "call", f"{command}: {one.name}"


def parts_of(annotation: Any) -> set[Any]:
    return {annotation, *(part for inner in get_args(annotation) for part in parts_of(inner))}


def secret_file(name: str, folder: Path, text: str) -> Any:
    """The value of a setting that names a file of the custodian."""
    file = folder / SECRET / "file.txt"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    annotation = RELEASE[name].field.annotation
    external = name in ("identifiers.also", "identifiers.engine")
    path = file if Path in parts_of(annotation) else f"hf:{file}" if external else str(file)
    return (path,) if get_origin(annotation) is tuple else path


def other_value(name: str) -> Any:
    """A valid value of a setting that is not its default."""
    one = RELEASE[name]
    names = one.declared.members.names() if one.declared.members else ()
    literals = [value for part in parts_of(one.field.annotation) for value in get_args(part)]
    choices = [value for value in (*names, *literals) if isinstance(value, str)]
    profiles = ["research", "cuda", "cp1252", "2027-01-31"]
    numbers = [7, 0.25, 2_000, 5.5]
    candidates = [True, False, *choices, *numbers, "|", *profiles, ("x",), *((c,) for c in choices)]
    default = settings_with(name).named_values()[name]
    for value in candidates:
        try:
            changed = settings_with(name, value)
        except ValidationError:
            continue
        if changed.named_values()[name] != default:
            return value
    raise AssertionError(f"no other value of {name}")


def settings_with(name: str, *value: Any) -> ReleaseSettings:
    """Settings of a kind that has a setting; without a value, with its default."""
    changes = {"kind": kinds_with(RELEASE[name].owners)[0], **WITH.get(name, {})}
    if value:
        changes[name] = value[0]
    return ReleaseSettings().changed(changes)


@pytest.mark.parametrize("name", RELEASE)
def test_a_changed_setting_is_in_the_hash_and_the_manifest_as_declared(name, tmp_path):
    one = RELEASE[name]
    is_path = one.declared.secret == "path"
    value = secret_file(name, tmp_path, "pain\n") if is_path else other_value(name)
    settings = settings_with(name, value)
    assert (run_hash(settings) != run_hash(settings_with(name))) == (one.affects != "call")
    public = public_settings(settings)
    before = public_settings(settings_with(name))
    assert SECRET not in json.dumps(public)
    if one.affects == "call" or one.declared.secret == "value":
        assert public == before
    elif is_path:
        assert (before[f"{name}_given"], public[f"{name}_given"]) == (False, True)
    else:
        assert public[name] == settings.record()[name] != before[name]


def test_a_later_release_of_the_key_may_have_other_columns_and_limits():
    """`--reuse` keeps how notes are treated and trained on."""
    fixed = {name for name, one in RELEASE.items() if one.affects in ("treatment", "training")}
    assert {name for name in fixed if "." not in name} == {"kind", "phi"}
    assert {name for name in fixed if name.startswith(("synthetic.", "notes."))} == {
        f"synthetic.{name}" for name in ("init", "epsilon", "delta", "public")
    }
    may_differ = {"patients", "staff", "reviewed"}
    assert {name for name in fixed if name.startswith("identifiers.")} == {
        name for name in RELEASE if name.startswith("identifiers.")
    } - {f"identifiers.{name}" for name in may_differ}


PATHS = [
    name for name, one in RELEASE.items() if one.declared.secret == "path" and one.affects != "call"
]


@pytest.mark.parametrize("name", PATHS)
def test_the_content_of_a_file_counts_and_not_its_path(name, tmp_path):
    first, moved, changed = (
        run_hash(settings_with(name, secret_file(name, tmp_path / folder, text)))
        for folder, text in (("a", "pain\n"), ("b", "pain\n"), ("c", "fever\n"))
    )
    assert first == moved != changed
