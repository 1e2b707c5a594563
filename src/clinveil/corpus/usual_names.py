"""Names that columns of notes usually have: what may be guessed from a header, and what may be shown of one.

A file without a header has a note's words where names should be, and the keys of JSON lines can be values. So an error
shows only names of this list, and those that the user named.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from clinveil.corpus.presets import PRESETS

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
