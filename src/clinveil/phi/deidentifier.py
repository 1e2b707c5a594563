"""`Deidentifier`: notes in, notes without the identifiers that were found out, fail closed.

A note is written only after every detector has read it and every span has been treated; a note that raises, or whose
text is null, is not written and is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from clinveil.core.keys import Key
from clinveil.core.spans import Span, splice
from clinveil.corpus.corpus import TEXT, Note, rows, with_texts
from clinveil.phi.detector import Detector
from clinveil.phi.finder import Finder, Revise
from clinveil.phi.note import plain
from clinveil.phi.policy import Mode, Treatment, tag, treatment
from clinveil.phi.surrogates import Surrogates

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient
    from clinveil.phi.settings import PhiSettings

NULL_TEXT, RAISED = "null text", "detector raised"


class Found(NamedTuple):
    """A span of a note with the text that stands there: as secret as the note."""

    note_id: str
    span: Span
    text: str


@dataclass
class Deidentified:
    """A batch after its identifiers were treated.

    Attributes:
        batch: the columns of the input; rows that were skipped are not in it.
        counts: treated spans by label.
        by_detector: the same by the detector whose label won.
        skipped: rows that were not written, by reason.
        tagged: dates and others for which no surrogate could be made, by label (mode replace).
        spans: what was found in the input, note by note, where it was asked for.
    """

    batch: pa.RecordBatch = field(repr=False)
    counts: Counter[str] = field(default_factory=Counter)
    by_detector: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    tagged: Counter[str] = field(default_factory=Counter)
    spans: list[Found] | None = field(default=None, repr=False)


class Deidentifier:
    """Finds identifiers in notes and removes, replaces or tags them.

    Args:
        key: all surrogates and date offsets come from it.
        mode: `remove` (nothing in their place), `replace` (surrogates) or `tag` (`[NAME]`).
        patients: what is known of patients beforehand, by patient id.
        keep_spans: also return the spans of each note.
        finders: detectors to use in place of all that are registered.

    Raises:
        UsageError: an unknown mode.
    """

    def __init__(
        self,
        key: Key,
        *,
        mode: Mode = "replace",
        patients: Mapping[str, Patient] | None = None,
        keep_spans: bool = False,
        finders: Sequence[Detector] | None = None,
    ) -> None:
        treatment("NAME", mode)
        self.key, self.mode, self.keep_spans = key, mode, keep_spans
        self.finder = Finder(finders, patients=patients)

    @classmethod
    def of(
        cls,
        settings: PhiSettings,
        key: Key,
        *,
        patients: Mapping[str, Patient] | None = None,
        keep_spans: bool = False,
        revise: Revise | None = None,
    ) -> Deidentifier:
        """The de-identifier that settings ask for; `revise` has the last word on what is found."""
        made = cls(key, mode=settings.mode, keep_spans=keep_spans)
        return made.with_finder(Finder.of(settings, patients, revise))

    @property
    def patients(self) -> Mapping[str, Patient]:
        """What is known of patients beforehand, by patient id."""
        return self.finder.patients

    def find(self, text: str, patient_id: str = "", note_id: str = "") -> list[Span]:
        """The spans of one note: sorted, without overlaps, in code points of `text`."""
        return self.finder.find(text, patient_id, note_id)

    def with_finder(self, finder: Finder) -> Deidentifier:
        """The same treatment of what another finder finds."""
        other = copy(self)
        other.finder = finder
        return other

    def treat(self, text: str, spans: list[Span], patient_id: str = "") -> tuple[str, Counter[str]]:
        """The text with its spans treated, and how many were tagged for want of a surrogate, by label."""
        replacements, tagged = self.replacements(text, spans, patient_id)
        return splice(text, spans, replacements), tagged

    def replacements(self, text: str, spans: list[Span], patient_id: str = "") -> tuple[list[str], Counter[str]]:
        """What stands in the place of each span, and how many were tagged for want of a surrogate, by label."""
        tagged: Counter[str] = Counter()
        surrogates = Surrogates(self.key)
        return [self._replacement(text, span, patient_id, surrogates, tagged) for span in spans], tagged

    def __call__(self, batch: pa.RecordBatch) -> Deidentified:
        """Treat a batch that begins with note_id, patient_id, text; other columns pass unchanged."""
        done = Deidentified(batch, spans=[] if self.keep_spans else None)
        if nulls := batch.column(TEXT).null_count:
            done.skipped[NULL_TEXT] = nulls
            batch = batch.filter(batch.column(TEXT).is_valid())
        texts = [self._note(note, done) for note in rows([batch])]
        done.batch = with_texts(batch, texts)
        return done

    def _note(self, note: Note, done: Deidentified) -> str | None:
        """The treated text; None for a note that must not be written."""
        try:
            spans = self.find(note.text, note.patient_id, note.note_id)
            treated, tagged = self.treat(note.text, spans, note.patient_id)
        except Exception:  # noqa: BLE001  fail closed: the note is not written; the message may hold its text
            done.skipped[RAISED] += 1
            return None
        done.counts.update(span.label for span in spans)
        done.by_detector.update(span.detector for span in spans)
        done.tagged += tagged
        if done.spans is not None:
            done.spans += [Found(note.note_id, span, note.text[span.start : span.end]) for span in spans]
        return treated

    def _replacement(self, text: str, span: Span, patient_id: str, surrogates: Surrogates, tagged: Counter[str]) -> str:
        what = treatment(span.label, self.mode)
        if what is Treatment.NOTHING:
            return ""
        if what is Treatment.SURROGATE:
            original = plain(text[span.start : span.end]).text
            made = surrogates.make(span.label, original, patient_id, self.patients.get(patient_id))
            if made is not None:
                return made
            tagged[span.label] += 1
        return tag(span.label)
