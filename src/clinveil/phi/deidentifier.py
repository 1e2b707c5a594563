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

from clinveil.core.collector import uncollected
from clinveil.core.keys import Key
from clinveil.core.spans import Span, splice
from clinveil.corpus.corpus import TEXT, Note, rows, with_texts
from clinveil.phi.audit import note_line
from clinveil.phi.crosswalk import Row, row
from clinveil.phi.detector import Detector
from clinveil.phi.finder import Finder, Revise
from clinveil.phi.policy import Mode, Policy, Treatment
from clinveil.phi.surrogates.dates import offset
from clinveil.phi.treating import Treated, Treating, failed

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
        counts: spans by label; those of a label that the policy keeps stand there as they were.
        by_detector: the same by the detector whose label won.
        skipped: rows that were not written, by reason.
        tagged: spans that got a tag as no surrogate, date or coarser value could be made, by label.
        spans: what was found in the input, note by note, where it was asked for.
        audit: the lines of the audit log, and crosswalk its rows, where they were asked for.
    """

    batch: pa.RecordBatch = field(repr=False)
    counts: Counter[str] = field(default_factory=Counter)
    by_detector: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    tagged: Counter[str] = field(default_factory=Counter)
    spans: list[Found] | None = field(default=None, repr=False)
    audit: list[str] = field(default_factory=list, repr=False)
    crosswalk: list[Row] = field(default_factory=list, repr=False)


class Deidentifier:
    """Finds identifiers in notes and treats them as a policy says.

    Args:
        key: all surrogates and date offsets come from it.
        mode: `remove` (nothing in their place), `replace` (surrogates) or `tag` (`[NAME]`), where there is no policy.
        patients: what is known of patients beforehand, by patient id.
        keep_spans: also return the spans of each note.
        finders: detectors to use in place of all that are registered.
        policy: what becomes of each label. fresh: the chance that a mention gets a surrogate of its own.

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
        policy: Policy | None = None,
        fresh: float = 0.0,
    ) -> None:
        self.key, self.mode, self.keep_spans = key, mode, keep_spans
        self.audit = self.crosswalk = False
        self.treating = Treating(key, policy or Policy.of_mode(mode), fresh)
        self.finder = Finder(finders, patients=patients, kept=self.policy.kept)

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
        made = cls(key, mode=settings.mode, keep_spans=keep_spans, policy=settings.policy(), fresh=settings.fresh)
        return made.with_finder(Finder.of(settings, patients, revise))

    @property
    def policy(self) -> Policy:
        """What becomes of each label."""
        return self.treating.policy

    @property
    def patients(self) -> Mapping[str, Patient]:
        """What is known of patients beforehand, by patient id."""
        return self.finder.patients

    def find(self, text: str, patient_id: str = "", note_id: str = "") -> list[Span]:
        """The spans of one note: sorted, without overlaps, in code points of `text`."""
        return self.treating.spans(text, self.finder.find(text, patient_id, note_id))

    def with_finder(self, finder: Finder) -> Deidentifier:
        """The same treatment of what another finder finds."""
        other = copy(self)
        other.finder = finder
        return other

    def recording(self, *, audit: bool, crosswalk: bool) -> Deidentifier:
        """The same, with lines for the audit log or rows of the crosswalk in what comes back."""
        other = copy(self)
        other.audit, other.crosswalk = audit, crosswalk
        return other

    def treat(self, text: str, spans: list[Span], patient_id: str = "") -> tuple[str, Counter[str]]:
        """The text with its spans treated, and how many got a tag as nothing better could be made, by label."""
        spans = self.treating.spans(text, spans)
        replacements, tagged = self.replacements(text, spans, patient_id)
        return splice(text, spans, replacements), tagged

    def replacements(self, text: str, spans: list[Span], patient_id: str = "") -> tuple[list[str], Counter[str]]:
        """What stands in the place of each span of `find`, and how many got a tag for want of it, by label."""
        treated = self.treated(text, spans, patient_id)
        return [made.text for made in treated], failed(self.policy, spans, treated)

    def treated(self, text: str, spans: list[Span], patient_id: str = "") -> list[Treated]:
        """What stands in the place of each span of `find`, and what was done."""
        return self.treating.treated(text, spans, patient_id, self.patients.get(patient_id))

    @uncollected
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
            treated = self.treated(note.text, spans, note.patient_id)
            text = splice(note.text, spans, [made.text for made in treated])
        except Exception:  # noqa: BLE001  fail closed: the note is not written; the message may hold its text
            done.skipped[RAISED] += 1
            return None
        done.counts.update(span.label for span in spans)
        done.by_detector.update(span.detector for span in spans)
        done.tagged += failed(self.policy, spans, treated)
        if self.audit:
            done.audit.append(note_line(self.key, note.note_id, note.text, spans, treated))
        if self.crosswalk:
            moved = any(made.action is Treatment.SHIFT for made in treated)
            shift = offset(self.key, note.patient_id).days if moved else None
            done.crosswalk.append(row(note, text, spans, treated, shift))
        if done.spans is not None:
            done.spans += [Found(note.note_id, span, note.text[span.start : span.end]) for span in spans]
        return text
