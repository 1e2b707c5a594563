"""Which column plays which role: told, known from a preset, or guessed where one usual name stands in the header."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from clinveil.core.errors import InputError
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns
from clinveil.corpus.presets import Preset, find_preset
from clinveil.corpus.usual_names import USUAL, bare, candidates


@dataclass(frozen=True)
class Resolved:
    """The columns of a file and how they were found.

    Attributes:
        guessed: the roles ("text", "id", "patient") that were guessed from usual names.
        preset: the known source, or None.
        error_flag: the source's column of notes entered in error, or None.
    """

    columns: Columns
    guessed: tuple[str, ...] = ()
    preset: Preset | None = None
    error_flag: str | None = None


def resolve(
    names: Sequence[str],
    settings: NotesSettings,
    where: str,
    *,
    label: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    unsteady: Collection[str] = (),
) -> Resolved:
    """Give each column of a file its role.

    Args:
        names: the columns of the file, distinct.
        settings: what the user said.
        where: base name of the file.
        label, keep: columns that go along, the labels among them.
        unsteady: names that not every row has, which may be data; dropped ones are counted, not listed.

    Raises:
        InputError: a column that is not there, a role that no column or more than one could play, one column in two
            roles, or a kept column with the name of a role that another column plays.
    """
    preset = find_preset(names, settings.preset, where)
    told = {"text": settings.text, "id": settings.id, "patient": settings.patient}
    named = {name for name in (settings.text, settings.id, settings.patient) if name} | {*keep, *label}
    roles = {role: _told(names, name, role, where, named) if name else None for role, name in told.items()}
    known = _of_preset(names, preset)
    guessed = []
    for role in roles:
        if roles[role] is None:
            taken = {name for name in roles.values() if name}
            roles[role] = known.get(role) or _guess(names, role, taken, where, named)
            if roles[role] and role not in known:
                guessed.append(role)
    text, note_id = roles["text"], roles["id"]
    assert text is not None and note_id is not None  # only a patient may be missing
    _refuse_two_roles(roles, where)
    flags = {name: "keep" for name in keep} | {name: "label" for name in label}
    kept = _kept(names, flags, roles, where, named)
    order = tuple(name for name in names if name in {*roles.values(), *kept})
    left_out = [name for name in names if name not in order]
    dropped = tuple(name for name in left_out if name not in unsteady)
    labels, others = tuple(dict.fromkeys(label)), len(left_out) - len(dropped)
    columns = Columns(text, note_id, roles["patient"], kept, labels, dropped, order, others)
    flag = _match(names, preset.error_flag) if preset and preset.error_flag else None
    return Resolved(columns, tuple(guessed), preset, flag)


def _told(names: Sequence[str], name: str, role: str, where: str, shown: Collection[str]) -> str:
    if name not in names:
        raise InputError(f"no column {name!r}", where=where, remedy=f"--{role} one of its {candidates(names, shown)}")
    return name


def _of_preset(names: Sequence[str], preset: Preset | None) -> dict[str, str]:
    if preset is None:
        return {}
    usual = {"text": preset.text, "id": preset.note_id, "patient": preset.patient_id}
    return {role: found for role, name in usual.items() if (found := _match(names, name))}


def _match(names: Sequence[str], lower: str) -> str | None:
    found = [name for name in names if name.lower() == lower]
    return found[0] if len(found) == 1 else None


def _guess(names: Sequence[str], role: str, taken: set[str], where: str, shown: Collection[str]) -> str | None:
    found = [name for name in names if bare(name) in USUAL[role] and name not in taken]
    if len(found) == 1 or (role == "patient" and not found):
        return found[0] if found else None
    if found:
        what = f"{len(found)} columns could be the {role}: {', '.join(found)}"
        raise InputError(what, where=where, remedy=f"choose one with --{role}")
    remedy = f"--{role} NAME; {candidates(names, shown)}"
    raise InputError(f"no column is known to be the {role}", where=where, remedy=remedy)


def _refuse_two_roles(roles: dict[str, str | None], where: str) -> None:
    played = [name for name in roles.values() if name]
    if len(set(played)) < len(played):
        raise InputError("one column cannot play two roles", where=where, remedy="differ --text, --id and --patient")


def _kept(
    names: Sequence[str], flags: dict[str, str], roles: dict[str, str | None], where: str, shown: Collection[str]
) -> tuple[str, ...]:
    for name, flag in flags.items():
        _told(names, name, flag, where, shown)
        if name in roles.values():
            what = f"--{flag} {name}: this column is the text, the id or the patient already"
            raise InputError(what, where=where, remedy="leave the flag out")
        if name in (NOTE_ID, PATIENT_ID, TEXT):
            what = f"--{flag} {name}: another column plays the role of this name"
            raise InputError(what, where=where, remedy="rename the column, or do not keep it")
    return tuple(name for name in names if name in flags)
