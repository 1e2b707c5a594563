"""Which column plays which role: told, known from a preset, or guessed where one usual name stands in the header.

Presets are the sources that most notes come from, known by their headers: MIMIC-III NOTEEVENTS (Johnson et al. 2016),
MIMIC-IV-Note (Johnson et al. 2023), the OMOP common data model's NOTE table (v5.4). OMOP's NOTE_NLP holds terms cut
from notes, not notes, and is refused.

A file without a header has a note's words where names should be, and the keys of JSON lines can be values. So an error
shows only usual names, and those that the user named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core.errors import InputError
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns

# Compared without case, spaces, dots, hyphens and underscores.
USUAL = {
    "text": (
        "text", "notetext", "note", "notes", "transcription", "report", "reporttext", "clinicalnote", "clinicaltext",
        "freetext", "documenttext", "sectiontext", "content", "body",
    ),
    "id": ("noteid", "docid", "id", "rowid", "documentid", "reportid", "textid"),
    "patient": ("patientid", "subjectid", "personid", "patid", "ptid", "patient", "subject"),
}  # fmt: skip
# Columns that stand beside a note in MIMIC, OMOP and ordinary exports.
_BESIDE = (
    "hadmid", "stayid", "chartdate", "charttime", "storetime", "category", "description", "cgid", "iserror",
    "notetype", "noteseq", "notedate", "notedatetime", "notetypeconceptid", "noteclassconceptid", "notetitle",
    "encodingconceptid", "languageconceptid", "providerid", "visitoccurrenceid", "visitdetailid", "notesourcevalue",
    "noteeventid", "noteeventfieldconceptid",
    "mrn", "encounterid", "visitid", "admissionid", "authorid", "date", "datetime", "time", "timestamp", "year",
    "createdat", "updatedat", "type", "doctype", "documenttype", "reporttype", "status", "title", "section", "source",
    "department", "specialty", "medicalspecialty", "service", "ward", "unit", "site", "language", "author", "name",
    "patientname", "sex", "gender", "age", "birthdate", "dob", "race", "ethnicity", "address", "phone", "email",
    "label", "labels", "class", "code", "codes", "icd", "icd9", "icd10", "icdcode", "diagnosis", "diagnosisgroup",
    "samplename", "keywords", "summary", "key", "index", "split",
)  # fmt: skip
_SHOWN = 12


@dataclass(frozen=True)
class Preset:
    """Which columns of a known source play which role; names are compared without case.

    Attributes:
        note_id, patient_id, text: column names in lower case.
        error_flag: a column whose value 1 marks a note as entered in error; such rows are skipped and counted.
    """

    name: str
    note_id: str
    patient_id: str
    text: str
    error_flag: str | None = None

    @property
    def needed(self) -> set[str]:
        """The columns without which it is not this source."""
        return {self.note_id, self.patient_id, self.text, self.error_flag or self.text}


PRESETS = (
    Preset("mimic3", "row_id", "subject_id", "text", error_flag="iserror"),
    Preset("mimic4", "note_id", "subject_id", "text"),
    Preset("omop", "note_id", "person_id", "note_text"),
)


def find_preset(names: Sequence[str], wanted: str, where: str) -> Preset | None:
    """The preset that was asked for, or whose columns stand in the header; None if there is none.

    Args:
        names: the columns of the file.
        wanted: a preset's name, "auto" or "none".
        where: base name of the file.

    Raises:
        InputError: OMOP's NOTE_NLP, or a preset asked for whose columns are not there.
    """
    lower = Counter(name.lower() for name in names)
    if "note_nlp_id" in lower:
        raise InputError("this is OMOP's NOTE_NLP, which holds terms, not notes", where=where, hint="give NOTE")
    if wanted == "none":
        return None
    if wanted != "auto":
        preset = next(p for p in PRESETS if p.name == wanted)
        if missing := preset.needed - lower.keys():
            what = f"no column {', '.join(sorted(missing))} for --preset {wanted}"
            raise InputError(what, where=where, hint="--preset none, and --text, --id, --patient")
        return preset
    # A name that stands in two cases (text, TEXT) is for the user to choose.
    return next((p for p in PRESETS if all(lower[name] == 1 for name in p.needed)), None)


def drop_errors(batch: pa.RecordBatch, flags: pa.Array) -> tuple[pa.RecordBatch, int]:
    """The rows whose error flag is not 1, and how many were left out. A null flag is no error."""
    values = pc.cast(flags.dictionary_decode() if pa.types.is_dictionary(flags.type) else flags, pa.string())
    wrong = pc.fill_null(pc.is_in(pc.utf8_trim_whitespace(values), pa.array(["1", "1.0", "true"])), False)
    return batch.filter(pc.invert(wrong)), int(pc.sum(wrong).as_py() or 0)


def bare(name: str) -> str:
    """A column name without case, spaces, dots, hyphens and underscores."""
    return re.sub(r"[\s._-]", "", name).lower()


_OF_PRESETS = {bare(name) for preset in PRESETS for name in preset.needed | {preset.note_id}}
_KNOWN = frozenset((*_BESIDE, *_OF_PRESETS, *(name for names in USUAL.values() for name in names)))


def candidates(names: Sequence[str], told: Collection[str] = ()) -> str:
    """The columns of a file as an error may show them: usual names and those in `told`, and how many others."""
    shown = [name for name in names if name in told or bare(name) in _KNOWN]
    others = len(names) - len(shown)
    more = [f"{len(shown) - _SHOWN} more"] * (len(shown) > _SHOWN)
    if others:
        more.append(f"{others} {'column of another name' if others == 1 else 'columns of other names'}")
    listed = ", ".join(shown[:_SHOWN])
    text = " and ".join([f"columns: {listed}"] * bool(shown) + more)
    return text + "; look at the file's first row" * bool(others)


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
    optional_keys: Collection[str] = (),
) -> Resolved:
    """Give each column of a file its role.

    Args:
        names: the columns of the file, distinct.
        settings: what the user said.
        where: base name of the file.
        label, keep: columns that go along, the labels among them.
        optional_keys: names that not every row has, which may be data; dropped ones are counted, not listed.

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
    dropped = tuple(name for name in left_out if name not in optional_keys)
    labels, others = tuple(dict.fromkeys(label)), len(left_out) - len(dropped)
    columns = Columns(text, note_id, roles["patient"], kept, labels, dropped, order, others)
    flag = _match(names, preset.error_flag) if preset and preset.error_flag else None
    return Resolved(columns, tuple(guessed), preset, flag)


def _told(names: Sequence[str], name: str, role: str, where: str, shown: Collection[str]) -> str:
    if name not in names:
        raise InputError(f"no column {name!r}", where=where, hint=f"--{role} one of its {candidates(names, shown)}")
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
        raise InputError(what, where=where, hint=f"choose one with --{role}")
    hint = f"--{role} NAME; {candidates(names, shown)}"
    raise InputError(f"no column is known to be the {role}", where=where, hint=hint)


def _refuse_two_roles(roles: dict[str, str | None], where: str) -> None:
    played = [name for name in roles.values() if name]
    if len(set(played)) < len(played):
        raise InputError("one column cannot play two roles", where=where, hint="differ --text, --id and --patient")


def _kept(
    names: Sequence[str], flags: dict[str, str], roles: dict[str, str | None], where: str, shown: Collection[str]
) -> tuple[str, ...]:
    for name, flag in flags.items():
        _told(names, name, flag, where, shown)
        if name in roles.values():
            what = f"--{flag} {name}: this column is the text, the id or the patient already"
            raise InputError(what, where=where, hint="leave the flag out")
        if name in (NOTE_ID, PATIENT_ID, TEXT):
            what = f"--{flag} {name}: another column plays the role of this name"
            raise InputError(what, where=where, hint="rename the column, or do not keep it")
    return tuple(name for name in names if name in flags)
