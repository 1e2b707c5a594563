"""`NoteDeidentifier`: treat the detected identifiers of notes, fail closed.

A note is written only after all detectors have run and every span has been treated. Notes with null
text or an exception are not written and are counted. In a marked-up note the tags stay around the
replacements, and those within an identifier follow its replacement; `script` and `style` elements
are removed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from clinveil.core import NO_MARKS, Key, Markup, Span, read_markup, splice, uncollected
from clinveil.corpus import TEXT, Note, rows, with_texts
from clinveil.phi.detection.detector import Detector
from clinveil.phi.detection.finder import Finder, united
from clinveil.phi.detection.note import plain, spans_in
from clinveil.phi.residue import FoundResidue, Offsets, Residue, ResidueTally, residues
from clinveil.phi.treatment.audit import note_line
from clinveil.phi.treatment.columns import moved, of_rows
from clinveil.phi.treatment.crosswalk import CrosswalkRow, row
from clinveil.phi.treatment.date_spans import date_spans
from clinveil.phi.treatment.dates import DateOrder, is_numeric, offset_of, order_shown, read_order
from clinveil.phi.treatment.placeholders import Placeholders
from clinveil.phi.treatment.policy import MASK, Mode, Policy, TreatedSpan, Treatment, tag
from clinveil.phi.treatment.surrogates import Surrogates
from clinveil.phi.treatment.surrogates.generalised import GENERALISED
from clinveil.phi.treatment.surrogates.names import NoteNames
from clinveil.phi.validation.corrections import read_corrections

if TYPE_CHECKING:
    from clinveil.corpus import Patient
    from clinveil.phi.name_index import NameIndex
    from clinveil.phi.settings import PhiSettings

ORDERS = {True: "day first", False: "month first", None: "both orders in the notes of the patient"}
NULL_TEXT = "null text"
RAISED = "detector raised"
MOST_RESIDUES = 200  # recorded per note; all are counted
_BEFORE = 40  # characters before an institution that may show an employer
_AFTER = 24  # characters after a place name that may contain its state


def _nothing(_: str) -> tuple[Offsets, ...]:
    return ()


class DetectedText(NamedTuple):
    """A detected span with its original text; as secret as the note."""

    note_id: str
    span: Span
    text: str


@dataclass
class TreatedBatch:
    """A batch with treated text.

    Attributes:
        batch: the columns of the input, without the skipped rows.
        counts: number of spans by label, including labels that the policy keeps unchanged.
        by_detector: number of spans by the detector that gave the label.
        skipped: number of rows not written, by reason.
        tagged: number of spans by label that became a tag because the policy's treatment failed.
        date_orders: number of notes with numeric dates by the order in which they were read.
        spans: the detected spans, note by note, if requested; otherwise those of notes with
            residues.
        tally: counts of residues. residues: the first `MOST_RESIDUES` of each note.
        audit, crosswalk: lines of the audit log and rows of the crosswalk, if requested.
    """

    batch: pa.RecordBatch = field(repr=False)
    counts: Counter[str] = field(default_factory=Counter)
    by_detector: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    tagged: Counter[str] = field(default_factory=Counter)
    date_orders: Counter[str] = field(default_factory=Counter)
    spans: list[DetectedText] = field(default_factory=list, repr=False)
    tally: ResidueTally = field(default_factory=ResidueTally)
    residues: list[FoundResidue] = field(default_factory=list, repr=False)
    audit: list[str] = field(default_factory=list, repr=False)
    crosswalk: list[CrosswalkRow] = field(default_factory=list, repr=False)


class NoteDeidentifier:
    """Detects identifiers in notes and applies a policy to them.

    Args:
        key: all surrogates and date offsets are derived from it.
        mode: `remove`, `replace` (surrogates) or `tag` (`[NAME]`); used if `policy` is None.
        patients: known patients by patient id.
        keep_spans: also return the spans of each note.
        finders: detectors to use instead of all registered ones.
        policy: the treatment of each label.

    Raises:
        UsageError: unknown mode.
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
    ) -> None:
        self.key = key
        self.mode = mode
        self.keep_spans = keep_spans
        self.policy = policy or Policy.of_mode(mode)
        self.audit = self.crosswalk = self.placeholders = False
        # Returns the ranges of a note that reviewers rejected.
        self.excused: Callable[[str], Iterable[Offsets]] = _nothing
        self.date_order: DateOrder = "auto"
        self.shift: tuple[str, ...] = ()
        words = self.policy.find_words, self.policy.keep_words
        self.finder = Finder(
            finders,
            patients=patients,
            kept=self.policy.kept,
            find_words=words[0],
            keep_words=words[1],
        )

    @classmethod
    def of(
        cls,
        settings: PhiSettings,
        key: Key,
        *,
        patients: Mapping[str, Patient] | None = None,
        keep_spans: bool = False,
    ) -> NoteDeidentifier:
        """Return the de-identifier for some settings."""
        deidentifier = cls(key, mode=settings.mode, keep_spans=keep_spans, policy=settings.policy())
        deidentifier.date_order = settings.date_order
        deidentifier.shift = settings.shift
        corrections = read_corrections(settings.reviewed, deidentifier.policy.kept)
        if corrections is not None:
            deidentifier.excused = corrections.rejected
        return deidentifier.with_finder(Finder.of(settings, patients, corrections))

    @property
    def patients(self) -> Mapping[str, Patient]:
        """Known patients by patient id."""
        return self.finder.patients

    def find(
        self, text: str, patient_id: str = "", note_id: str = "", detected: list[Span] | None = None
    ) -> list[Span]:
        """Return the spans of one note: sorted, without overlaps, in code points of `text`; as
        `Finder.find`.
        """
        spans = self.finder.find(text, patient_id, note_id, detected)
        return self._with_dates(text, spans)

    def _with_dates(self, text: str, spans: list[Span]) -> list[Span]:
        """Return the spans with the date spans that no detector returns."""
        shifting = self.policy["DATE"] is Treatment.SHIFT
        markup = read_markup(text)
        if markup is None:
            return date_spans(text, spans, shifting=shifting)
        with_dates = date_spans(*spans_in(markup, spans), shifting=shifting)
        return united(
            [
                *spans,
                *(span.with_range(*markup.to_source(span.start, span.end)) for span in with_dates),
            ]
        )

    def with_finder(self, finder: Finder) -> NoteDeidentifier:
        """Return a copy with another finder."""
        other = copy(self)
        other.finder = finder
        return other

    def with_names(self, name_index: NameIndex) -> NoteDeidentifier:
        """Return a copy with the names of other notes."""
        return self.with_finder(self.finder.with_context(name_index))

    def for_patients(self, patient_ids: Iterable[str]) -> NoteDeidentifier:
        """Return a copy restricted to the data of some patients, as sent to a worker with its
        batch.
        """
        return self.with_finder(self.finder.for_patients(patient_ids))

    def recording(self, *, audit: bool, crosswalk: bool) -> NoteDeidentifier:
        """Return a copy with results that include lines of the audit log or rows of the
        crosswalk.
        """
        other = copy(self)
        other.audit = audit
        other.crosswalk = crosswalk
        return other

    def with_placeholders(self) -> NoteDeidentifier:
        """Return a copy that writes placeholders instead of surrogates, for the training of a
        language model.
        """
        other = copy(self)
        other.placeholders = True
        return other

    def treat(self, text: str, spans: list[Span], patient_id: str = "") -> tuple[str, Counter[str]]:
        """Return the treated text, and the number of spans by label that became a tag because
        treatment failed.
        """
        spans = self._with_dates(text, spans)
        treated = self.treated(text, spans, patient_id)
        failed = self._failed(spans, treated)
        spans, treated = _without_scripts(text, spans, treated)
        return splice(text, spans, [item.text for item in treated]), failed

    def treated(self, text: str, spans: Sequence[Span], patient_id: str = "") -> list[TreatedSpan]:
        """Return the replacement of each span of `find`, and the treatment applied."""
        markup = read_markup(text)
        return (
            self._replaced(text, spans, patient_id)
            if markup is None
            else self._in_markup(markup, spans, patient_id)
        )

    def _in_markup(
        self, markup: Markup, spans: Sequence[Span], patient_id: str
    ) -> list[TreatedSpan]:
        """Return the replacements in a marked-up note: escaped, followed by the tags within their
        spans.
        """
        ranges = [markup.to_text(span.start, span.end) for span in spans]
        within = [
            span.with_range(*text_range)
            for span, text_range in zip(spans, ranges, strict=True)
            if text_range[0] < text_range[1]
        ]
        replaced = iter(self._replaced(markup.text, within, patient_id))
        treated: list[TreatedSpan] = []
        for span, (start, end) in zip(spans, ranges, strict=True):
            item = next(replaced) if start < end else TreatedSpan(tag(span.label), Treatment.TAG)
            if item.action is Treatment.KEEP:
                text = markup.source[span.start : span.end]
            else:
                text = markup.escaped(span.start, item.text) + markup.tags(span.start, span.end)
            treated.append(item._replace(text=text))
        return treated

    def _replaced(self, text: str, spans: Sequence[Span], patient_id: str) -> list[TreatedSpan]:
        """Return the replacement of each span in a text without markup."""
        names = NoteNames(text, [(span.start, span.end) for span in spans if span.label == "NAME"])
        dates = [text[span.start : span.end] for span in spans if span.label == "DATE"]
        day_first = self.day_first(dates, patient_id)
        institutions = [text[span.start : span.end] for span in spans if span.label == "HOSPITAL"]
        surrogates: Surrogates | Placeholders = Surrogates(
            self.key, names, day_first=day_first, institutions=institutions
        )
        if self.placeholders:
            surrogates = Placeholders(self.key, names, dates, day_first=day_first)
        return [self._treated(text, span, patient_id, surrogates) for span in spans]

    def day_first(self, dates: Iterable[str], patient_id: str) -> bool | None:
        """Return whether the dates of a note are read day first; None if the patient's notes show
        both orders.
        """
        of_patient = self.finder.name_index.date_orders.get(patient_id, 0)
        return read_order(self.date_order, order_shown(dates), of_patient)

    def _treated(
        self, text: str, span: Span, patient_id: str, surrogates: Surrogates | Placeholders
    ) -> TreatedSpan:
        treatment = self.policy[span.label]
        original = text[span.start : span.end]
        replacement: str | None
        if treatment in (Treatment.SURROGATE, Treatment.SHIFT):
            patient = self.patients.get(patient_id)
            before = text[max(0, span.start - _BEFORE) : span.start]
            replacement = surrogates.make(
                span.label, plain(original).text, patient_id, patient, before
            )
        elif treatment is Treatment.GENERALISE:
            replacement = GENERALISED[span.label](
                plain(original).text, text[span.end : span.end + _AFTER]
            )
            if replacement is None and isinstance(surrogates, Placeholders):  # a date of birth
                replacement = surrogates.make(span.label, plain(original).text, patient_id)
        else:
            replacement = {
                Treatment.KEEP: original,
                Treatment.REMOVE: "",
                Treatment.MASK: MASK,
            }.get(treatment)
        return (
            TreatedSpan(tag(span.label), Treatment.TAG)
            if replacement is None
            else TreatedSpan(replacement, treatment)
        )

    def _orders(self, note: Note, spans: Sequence[Span]) -> list[str]:
        """Return how the numeric dates of a note were read, if it has any that are shifted."""
        markup = read_markup(note.text)
        text, spans = (note.text, spans) if markup is None else spans_in(markup, spans)
        dates = [text[span.start : span.end] for span in spans if span.label == "DATE"]
        if self.policy["DATE"] is not Treatment.SHIFT or not any(map(is_numeric, dates)):
            return []
        return [ORDERS[self.day_first(dates, note.patient_id)]]

    def _failed(self, spans: Sequence[Span], treated: Sequence[TreatedSpan]) -> Counter[str]:
        """Count by label the spans that became a tag because the policy's treatment failed."""
        pairs = zip(spans, treated, strict=True)
        return Counter(
            span.label for span, item in pairs if item.action is not self.policy[span.label]
        )

    @uncollected
    def __call__(
        self, batch: pa.RecordBatch, detected: Sequence[list[Span] | None] | None = None
    ) -> TreatedBatch:
        """Treat a batch with the first columns note_id, patient_id and text; of the others, those
        of dates move.

        Args:
            detected: spans of the detectors in each note with a text, if they were run before; None
                where they failed.
        """
        result = TreatedBatch(batch)
        if nulls := batch.column(TEXT).null_count:
            result.skipped[NULL_TEXT] = nulls
            batch = batch.filter(batch.column(TEXT).is_valid())
        batch = self._with_shifted_columns(batch)
        notes = zip(rows([batch]), detected or [None] * batch.num_rows, strict=True)
        result.batch = with_texts(batch, [self._note(note, spans, result) for note, spans in notes])
        return result

    def _residues(self, note: Note, spans: list[Span], treated: list[TreatedSpan]) -> list[Residue]:
        """Return the residues of a note, without what a reviewer rejected and without keep
        words.
        """
        patient = self.patients.get(note.patient_id)
        excused = list(self.excused(note.note_id))
        if self.finder.keep_words is not None:
            excused += self.finder.kept_ranges_of(self.finder.view(note.text, note.patient_id))
        return residues(note.text, spans, treated, self.policy, patient=patient, excused=excused)

    def _with_shifted_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the columns of `shift` moved by the offset of each patient."""
        names = [name for name in self.shift if name in batch.schema.names]
        if not names:
            return batch
        patients = list(of_rows(batch))
        offsets = [
            offset_of(self.key, patient_id, self.patients.get(patient_id))
            for patient_id in patients
        ]
        of_patients = self.finder.name_index.date_orders
        for name in names:
            index = batch.schema.get_field_index(name)
            shown = order_shown(
                text for text in batch.column(index).to_pylist() if isinstance(text, str)
            )
            orders = [
                read_order(self.date_order, shown, of_patients.get(patient_id, 0))
                for patient_id in patients
            ]
            column = moved(batch.column(index), offsets, orders)
            batch = batch.set_column(index, batch.schema.field(index), column)
        return batch

    def _note(self, note: Note, detected: list[Span] | None, result: TreatedBatch) -> str | None:
        """Return the treated text; None if the note must not be written."""
        if self.placeholders:
            note = note._replace(text=note.text.translate(NO_MARKS))
        try:
            spans = self.find(note.text, note.patient_id, note.note_id, detected)
            treated = self.treated(note.text, spans, note.patient_id)
            offsets, written = _without_scripts(note.text, spans, treated)
            text = splice(note.text, offsets, [item.text for item in written])
            left = self._residues(note, offsets, written)
        # Fail closed: the note is not written; the message may contain its text.
        except Exception:  # noqa: BLE001
            result.skipped[RAISED] += 1
            return None
        result.counts.update(span.label for span in spans)
        result.by_detector.update(span.detector for span in spans)
        result.tagged += self._failed(spans, treated)
        result.date_orders.update(self._orders(note, spans))
        if self.audit:
            result.audit.append(note_line(self.key, note.note_id, note.text, offsets, written))
        if self.crosswalk:
            shifted = any(item.action is Treatment.SHIFT for item in treated)
            patient = self.patients.get(note.patient_id)
            shift = offset_of(self.key, note.patient_id, patient).days if shifted else None
            result.crosswalk.append(row(note, text, offsets, written, shift))
        result.tally.add(left)
        result.residues += [
            FoundResidue.of(note.note_id, note.text, residue) for residue in left[:MOST_RESIDUES]
        ]
        if self.keep_spans or left:
            result.spans += [
                DetectedText(note.note_id, span, note.text[span.start : span.end]) for span in spans
            ]
        return text


def _without_scripts(
    text: str, spans: list[Span], treated: list[TreatedSpan]
) -> tuple[list[Span], list[TreatedSpan]]:
    """Return the spans and their replacements with the removal of `script` and `style` elements
    outside of them.
    """
    markup = read_markup(text)
    if markup is None or not markup.dropped:
        return spans, treated
    pairs = list(zip(spans, treated, strict=True))
    ends = [span.end for span in spans]
    for start, end in markup.dropped:
        following = bisect_right(ends, start)
        if following == len(spans) or spans[following].start >= end:
            removed = Span(start, end, "ID", "markup", 1.0, "script or style")
            pairs.append((removed, TreatedSpan("", Treatment.REMOVE)))
    pairs.sort(key=lambda pair: pair[0].start)
    return [span for span, _ in pairs], [item for _, item in pairs]
