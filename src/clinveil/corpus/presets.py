"""Column presets of the sources that most notes come from, known by their headers.

MIMIC-III NOTEEVENTS (Johnson et al. 2016), MIMIC-IV-Note (Johnson et al. 2023), the OMOP common data model's NOTE table
(v5.4). OMOP's NOTE_NLP holds terms cut from notes, not notes, and is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core.errors import InputError


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
        raise InputError("this is OMOP's NOTE_NLP, which holds terms, not notes", where=where, remedy="give NOTE")
    if wanted == "none":
        return None
    if wanted != "auto":
        preset = next(p for p in PRESETS if p.name == wanted)
        if missing := preset.needed - lower.keys():
            what = f"no column {', '.join(sorted(missing))} for --preset {wanted}"
            raise InputError(what, where=where, remedy="--preset none, and --text, --id, --patient")
        return preset
    # A name that stands in two cases (text, TEXT) is for the user to choose.
    return next((p for p in PRESETS if all(lower[name] == 1 for name in p.needed)), None)


def drop_errors(batch: pa.RecordBatch, flags: pa.Array) -> tuple[pa.RecordBatch, int]:
    """The rows whose error flag is not 1, and how many were left out. A null flag is no error."""
    values = pc.cast(flags.dictionary_decode() if pa.types.is_dictionary(flags.type) else flags, pa.string())
    wrong = pc.fill_null(pc.is_in(pc.utf8_trim_whitespace(values), pa.array(["1", "1.0", "true"])), False)
    return batch.filter(pc.invert(wrong)), int(pc.sum(wrong).as_py() or 0)
