"""Assign column roles: given by the user, by a preset, or guessed if exactly one common name is in
the header.

Presets are common sources, recognised by their headers: MIMIC-III NOTEEVENTS (Johnson et al. 2016),
MIMIC-IV-Note (Johnson et al. 2023) and the NOTE table of the OMOP common data model (v5.4). OMOP's
NOTE_NLP is rejected, because it contains terms extracted from notes.

Column names may be data: the first line of a file without header, or keys of JSON lines. Therefore
an error message lists only common names and those that the user gave.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core import InputError, LabelledNotesSettings, NotesSettings
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns

# Compared without case, spaces, dots, hyphens and underscores.
USUAL = {
    "text": (
        "text", "notetext", "note", "notes", "transcription", "report", "reporttext",
        "clinicalnote", "clinicaltext", "freetext", "documenttext", "sectiontext", "content",
        "body",
    ),
    "id": ("noteid", "docid", "id", "rowid", "documentid", "reportid", "textid"),
    "patient": ("patientid", "subjectid", "personid", "patid", "ptid", "patient", "subject"),
}  # fmt: skip
# Other common columns of MIMIC, OMOP and ordinary exports.
_COMMON = (
    "hadmid", "stayid", "chartdate", "charttime", "storetime", "category", "description", "cgid",
    "iserror", "notetype", "noteseq", "notedate", "notedatetime", "notetypeconceptid",
    "noteclassconceptid", "notetitle", "encodingconceptid", "languageconceptid", "providerid",
    "visitoccurrenceid", "visitdetailid", "notesourcevalue", "noteeventid",
    "noteeventfieldconceptid", "mrn", "encounterid", "visitid", "admissionid", "authorid", "date",
    "datetime", "time", "timestamp", "year", "createdat", "updatedat", "type", "doctype",
    "documenttype", "reporttype", "status", "title", "section", "source", "department", "specialty",
    "medicalspecialty", "service", "ward", "unit", "site", "language", "author", "name",
    "patientname", "sex", "gender", "age", "birthdate", "dob", "race", "ethnicity", "address",
    "phone", "email", "label", "labels", "class", "code", "codes", "icd", "icd9", "icd10",
    "icdcode", "diagnosis", "diagnosisgroup", "samplename", "keywords", "summary", "key", "index",
    "split",
)  # fmt: skip
_SHOWN = 12


@dataclass(frozen=True)
class Preset:
    """The column roles of a known source; names are compared without case.

    Attributes:
        note_id, patient_id, text: column names in lower case.
        error_flag: a column with the value 1 for a note entered in error; such rows are skipped and
            counted.
    """

    name: str
    note_id: str
    patient_id: str
    text: str
    error_flag: str | None = None

    @property
    def needed(self) -> set[str]:
        """The columns that identify this source."""
        return {self.note_id, self.patient_id, self.text, self.error_flag or self.text}


PRESETS = (
    Preset("mimic3", "row_id", "subject_id", "text", error_flag="iserror"),
    Preset("mimic4", "note_id", "subject_id", "text"),
    Preset("omop", "note_id", "person_id", "note_text"),
)


def find_preset(names: Sequence[str], wanted: str, where: str) -> Preset | None:
    """Return the requested preset, or the one with its columns in the header; None if there is
    none.

    Args:
        names: the columns of the file.
        wanted: a preset's name, "auto" or "none".
        where: base name of the file.

    Raises:
        InputError: OMOP's NOTE_NLP, or missing columns of the requested preset.
    """
    lower = Counter(name.lower() for name in names)
    if "note_nlp_id" in lower:
        problem = "this is OMOP's NOTE_NLP table, which contains terms, not notes"
        raise InputError(problem, where=where, hint="use the NOTE table")
    if wanted == "none":
        return None
    if wanted != "auto":
        preset = next(p for p in PRESETS if p.name == wanted)
        if missing := preset.needed - lower.keys():
            problem = f"no column {', '.join(sorted(missing))} for preset={wanted}"
            hint = (
                "use --set notes.preset=none with --text COLUMN, --id COLUMN and --patient COLUMN"
            )
            raise InputError(problem, where=where, hint=hint)
        return preset
    # If a name occurs in two spellings (text, TEXT), the user must choose.
    return next((p for p in PRESETS if all(lower[name] == 1 for name in p.needed)), None)


def no_errors(flags: pa.Array) -> pa.BooleanArray:
    """Return for each row whether its error flag is not 1. A null flag is not an error."""
    values = pc.cast(
        flags.dictionary_decode() if pa.types.is_dictionary(flags.type) else flags, pa.string()
    )
    wrong = pc.is_in(pc.utf8_trim_whitespace(values), pa.array(["1", "1.0", "true"]))
    return pc.invert(pc.fill_null(wrong, False))


def bare(name: str) -> str:
    """Return a column name in lower case, without spaces, dots, hyphens and underscores."""
    return re.sub(r"[\s._-]", "", name).lower()


_OF_PRESETS = {bare(name) for preset in PRESETS for name in preset.needed | {preset.note_id}}
_KNOWN = frozenset((*_COMMON, *_OF_PRESETS, *(name for names in USUAL.values() for name in names)))


def candidates(names: Sequence[str], allowed: Collection[str] = ()) -> str:
    """Return the columns that an error may list: common names and those in `allowed`, and the
    positions of others.
    """
    shown = [name for name in names if name in allowed or bare(name) in _KNOWN]
    others = [str(position) for position, name in enumerate(names, 1) if name not in shown]
    hidden_count = [f"{len(shown) - _SHOWN} more"] * (len(shown) > _SHOWN)
    if others:
        shown_names = ", ".join(others[:_SHOWN]) + ", …" * (len(others) > _SHOWN)
        hidden_count.append(
            f"{len(others)} of {'another name' if len(others) == 1 else 'other names'} (column"
            f" {shown_names})"
        )
    listed = ", ".join(shown[:_SHOWN])
    text = " and ".join([f"columns: {listed}"] * bool(shown) + hidden_count)
    return (
        text
        + "; other names are hidden, as they may be data: look at the file's first row"
        * bool(others)
    )


@dataclass(frozen=True)
class Resolved:
    """The columns of a file and how their roles were assigned.

    Attributes:
        guessed: the roles ("text", "id", "patient") that were guessed from common names.
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
    optional_keys: Collection[str] = (),
) -> Resolved:
    """Assign the column roles of a file.

    Args:
        names: the columns of the file, distinct.
        settings: the roles that the user gave.
        where: base name of the file.
        label, keep: columns to keep, including the labels.
        optional_keys: columns that some rows lack; their names may be data, so dropped ones are
            counted, not listed.

    Raises:
        InputError: a missing column, a role without column or with several candidates, one column
            in two roles, or a kept column that has the name of another column's role.
    """
    preset = find_preset(names, settings.preset, where)
    assert not isinstance(settings.text, tuple)  # `several_texts.single`
    chosen = {"text": settings.text, "id": settings.id, "patient": settings.patient}
    if isinstance(settings, LabelledNotesSettings):
        label = label or settings.label
    named = {name for name in chosen.values() if name} | {*keep, *label}
    roles = {
        role: _required(names, name, role, where, named) if name else None
        for role, name in chosen.items()
    }
    usual = (
        {"text": preset.text, "id": preset.note_id, "patient": preset.patient_id} if preset else {}
    )
    known = {role: column for role, name in usual.items() if (column := _match(names, name))}
    guessed = []
    for role in roles:
        if roles[role] is None:
            taken = {name for name in roles.values() if name}
            roles[role] = known.get(role) or _guess(names, role, taken, where, named)
            if roles[role] and role not in known:
                guessed.append(role)
    text = roles["text"]
    note_id = roles["id"]
    assert text is not None and note_id is not None  # only the patient column is optional
    assigned = [name for name in roles.values() if name]
    if len(set(assigned)) < len(assigned):
        hint = "pass different columns for --text, --id and --patient"
        raise InputError("the same column is used for two roles", where=where, hint=hint)
    flags = {name: "keep" for name in keep} | {name: "label" for name in label}
    kept = _kept(names, flags, roles, where, named)
    order = tuple(name for name in names if name in {*roles.values(), *kept})
    left_out = [name for name in names if name not in order]
    dropped = tuple(name for name in left_out if name not in optional_keys)
    labels = tuple(dict.fromkeys(label))
    others = len(left_out) - len(dropped)
    columns = Columns(text, note_id, roles["patient"], kept, labels, dropped, order, others)
    flag = _match(names, preset.error_flag) if preset and preset.error_flag else None
    return Resolved(columns, tuple(guessed), preset, flag)


def name_the_column(role: str) -> str:
    """Return the hint that asks for the column of a role, for both interfaces."""
    return f'pass --{role} NAME, in Python {role}="NAME"'


def _required(
    names: Sequence[str], name: str, role: str, where: str, shown: Collection[str]
) -> str:
    if name not in names:
        hint = f"{name_the_column(role)}; {candidates(names, shown)}"
        raise InputError(f"no column {name!r}", where=where, hint=hint)
    return name


def _match(names: Sequence[str], lower: str) -> str | None:
    matches = [name for name in names if name.lower() == lower]
    return matches[0] if len(matches) == 1 else None


def _guess(
    names: Sequence[str], role: str, taken: set[str], where: str, shown: Collection[str]
) -> str | None:
    matches = [name for name in names if bare(name) in USUAL[role] and name not in taken]
    if role == "patient" and not matches:  # a record number belongs to one patient
        matches = [name for name in names if bare(name) == "mrn" and name not in taken]
    if len(matches) == 1 or (role == "patient" and not matches):
        return matches[0] if matches else None
    if matches:
        problem = f"{len(matches)} columns could be the {role}: {', '.join(matches)}"
        raise InputError(problem, where=where, hint=name_the_column(role))
    hint = f"{name_the_column(role)}; {candidates(names, shown)}"
    raise InputError(f"cannot tell which column is the {role}", where=where, hint=hint)


def _kept(
    names: Sequence[str],
    flags: dict[str, str],
    roles: dict[str, str | None],
    where: str,
    shown: Collection[str],
) -> tuple[str, ...]:
    for name, flag in flags.items():
        _required(names, name, flag, where, shown)
        if name in roles.values():
            problem = f"--{flag} {name}: this column is already the text, id or patient column"
            raise InputError(problem, where=where, hint="omit the flag")
        if name in (NOTE_ID, PATIENT_ID, TEXT):
            problem = f"--{flag} {name}: this name is reserved for a column role"
            raise InputError(problem, where=where, hint="rename the column, or do not keep it")
    return tuple(name for name in names if name in flags)
