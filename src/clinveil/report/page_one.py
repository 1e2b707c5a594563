"""The first page of the report: the verdict, risks, content and utility, on one A4 page."""

from __future__ import annotations

from dataclasses import dataclass

from clinveil.core import Finding, GapScores, NumberKind
from clinveil.report.cells import FindingRow, row, sentence
from clinveil.report.limits import UNLIMITED, Limits
from clinveil.report.numerals import SMALL, Number, interval, number, share, small
from clinveil.report.outward import hidden_gate
from clinveil.report.record import ReleaseRecord
from clinveil.report.risks import attacker
from clinveil.report.verdict import (
    Answer,
    Gate,
    Outcome,
    Question,
    Verdict,
    overall,
    tally,
)
from clinveil.stats import is_no_evidence

# characters; longer text would not fit the page
EXCERPTS = 3
EXCERPT_LENGTH = 190
LISTED = 3  # hints
LINE = 95
HALF_LINE = 50
WHY_LENGTH = 120
FULL = 23  # lines of rows, sentences and the headline that fit one page in the usual size of print
NAME_LENGTH = 52
NEARLY = 0.9  # of the way from random words to real notes: as good as these
KINDS = {
    "obfuscated": (
        "Running text in which a similar or a common word, drawn under a secret key, replaces every"
        " word."
    ),
    "deidentified": (
        "Readable notes in which surrogates replace the identifiers that the detectors found."
    ),
    "synthetic": "Notes written by a language model that was trained on the real notes.",
}
TASKS = {
    "utility.transfer": "Classifier",
    "utility.sequence": "Sentence labels",
    "utility.vectors": "Word vectors",
    "utility.language_model": "Language model (lower is better)",
    "utility.within": "Classifier, trained and tested on released notes",
}
PURPOSES = {
    "utility.transfer": "text classifiers",
    "utility.sequence": "taggers",
    "utility.vectors": "word vectors",
}
TERMS = {
    "shadow vectors": "Shadow vectors: trained by the recipient on similar notes.",
    "known pair": "Known pairs: notes held in both forms.",
    "planted names": "Planted names: invented, added for this test.",
}
JOINS = (
    "This release joins release {} under the same key, and both must be treated as one: the verdict"
    " and figures here cover the notes of this one alone."
)
_MODELS = {
    "tfidf-lr": "TF-IDF and logistic regression",
    "lr": "logistic regression",
    "lstm": "LSTM",
    "cnn": "CNN",
}
_FORMATS: dict[str, NumberKind] = {"bits per word": "length"}
_AREAS = frozenset({"membership"})  # risks measured as an area under the curve
_SHARES = frozenset(
    {"names", "planted_names", "words", "ten_words", "other_notes", "public_texts", *_AREAS}
)
"""Risks that an attack measures, with an interval and chance."""
_OWN = "own_identifiers"
_OF_NOTES = frozenset({"ten_words", "other_notes", "public_texts"})
_EXPLAINED = frozenset({"identifiers_missed", "use"})
"""Risks with a gate that explains its figure."""
_UNPROTECTED = "attack.linkage_unprotected"


@dataclass(frozen=True, slots=True)
class Use:
    """One utility figure: score of the release between floor and ceiling, or the reason why no
    share is printed.

    `share` is the share of the gap between floor and ceiling, `of_real` the score divided by the
    ceiling; both with their interval. `of` is the number of findings of this task; the lowest share
    is shown.
    """

    task: str
    metric: str
    which: str
    share: Number
    ends: tuple[Number, Number] | None
    floor: Number
    score: Number
    ceiling: Number
    of_real: Number
    of_real_ends: tuple[Number, Number] | None
    of: int = 1
    why: str = ""
    tested_on: str = ""

    @property
    def in_words(self) -> str:
        """How the release compares with random words and with real notes."""
        if self.share.value is None:
            return ""
        low = self.share.value
        high = self.share.value
        if self.ends is not None:
            low = self.ends[0].value or 0.0
            high = self.ends[1].value or 0.0
        if low > 0:
            return "as good as real" if low >= NEARLY else "better than random"
        return "worse than random" if high < 0 else "like random"


@dataclass(frozen=True, slots=True)
class PageRow:
    """One question of page one with its answer.

    Attributes:
        gate: that decides; None if nothing was measured. figure: of the attack, where one measured
            the risk. before: the same figure of the original notes, or a dash.
        patients: about how many patients the figure is, or "".
        besides: risks of a held row that have no limit, with their figures, or "".
    """

    question: Question
    gate: Gate | None
    outcome: Outcome
    figure: FindingRow | None
    before: Number
    patients: str
    besides: str = ""

    @property
    def why(self) -> str:
        """The reason for a missing figure; "" where there is one."""
        if self.gate is None or self.gate.value is not None:
            return ""
        return sentence(self.gate.meaning)

    @property
    def lines(self) -> int:
        """About how many lines the row takes in print."""
        text = len(self.note) + len(self.besides)
        under = text // HALF_LINE + 1 if text else 0
        beside = 1 if self.patients or (self.gate and self.gate.default) else 0
        return 1 + max(under, beside, min(len(self.why), WHY_LENGTH) // HALF_LINE)

    @property
    def note(self) -> str:
        """Which risk the figure is of, and who got it."""
        if self.gate is None or self.gate.value is None:
            return ""
        if self.gate.risk in _EXPLAINED:
            return sentence(self.gate.meaning)
        several = len(self.question.risks) > 1
        by = attacker(self.figure.finding) if self.figure and self.gate.risk in _SHARES else ""
        return "; ".join(filter(None, (self.gate.name if several else "", by)))


@dataclass(frozen=True, slots=True)
class FirstPage:
    """Everything on the first page that is computed from the record.

    Attributes:
        state: "refused", "open" (something is not decided) or "clear".
        verdict: the verdict for this audience. headline: the same, and what differs for the public.
        rows: one for each question that applies to this kind
            of release. absent: names of the others. unmeasured: names of those without a gate.
        changes: what to change for each limit that is not held: the question, and the hint.
        changed: limits that the officer changed, with their defaults.
        covers: what the agreement must say because risks have no limit.
        unchanged: columns that leave as they are. joins: the earlier release under the same key, or
            "". earlier: whether there are other releases of these notes.
        purposes: what the release can train: tasks shown to be better than the floor.
    """

    state: str
    verdict: str
    headline: str
    kind: str
    excerpts: tuple[str, ...]
    uses: tuple[Use, ...]
    rows: tuple[PageRow, ...]
    absent: tuple[str, ...]
    unmeasured: tuple[str, ...]
    checks: str
    changes: tuple[tuple[str, str], ...]
    changed: tuple[str, ...]
    covers: tuple[str, ...]
    unchanged: tuple[str, ...]
    joins: str
    earlier: bool
    purposes: tuple[str, ...]

    @property
    def terms(self) -> list[str]:
        """Explanations of the terms that this page uses."""
        used = " ".join(row.note for row in self.rows)
        return [meaning for term, meaning in TERMS.items() if term in used.casefold()]

    @property
    def is_dense(self) -> bool:
        """Whether the page has more than fits one sheet in the usual size of print."""
        extras = (self.joins, self.changed, *self.changes)
        lines = sum(row.lines for row in self.rows)
        lines += len(self.covers) + 2 * sum(map(bool, extras))
        lines += sum(1 for use in self.uses if use.why) + self.earlier
        lines += (len(self.headline) + len(self.kind)) // LINE
        return lines > FULL

    @property
    def more(self) -> str:
        """The part of the headline on other audiences."""
        return self.headline.removeprefix(self.verdict).strip()

    @property
    def tested_on(self) -> str:
        """The notes that the first utility figure was tested on; "" without one."""
        return next((use.tested_on for use in self.uses if use.tested_on), "")


def first_page(record: ReleaseRecord) -> FirstPage:
    """Return the first page of a record."""
    tested = [f for f in record.findings if f.value is not None]
    least = [(f, f.value if f.low is None else f.low) for f in tested]
    useless = {f.measure for f, low in least if is_no_evidence(f) or (low or 0.0) <= 0.0}
    useful = {f.measure for f in tested} - useless
    verdict = record.verdict
    rows = [_row(answer, record) for answer in verdict.answers]
    return FirstPage(
        state="refused" if record.refused else "open" if verdict.undecided else "clear",
        verdict=verdict.sentence,
        headline=overall(record.verdicts),
        kind=record.about or KINDS.get(record.kind, ""),
        excerpts=tuple(clipped(text, EXCERPT_LENGTH) for text in record.excerpts[:EXCERPTS]),
        uses=_three_uses(record),
        rows=tuple(row for row in rows if row.outcome != "does not apply"),
        absent=tuple(
            row.question.name for row in rows if row.gate and row.outcome == "does not apply"
        ),
        unmeasured=tuple(row.question.name for row in rows if row.gate is None),
        checks=tally(gate.outcome for gate in verdict.checks),
        changes=_changes(verdict)[:LISTED],
        changed=tuple(f"{gate.name}: {default_of(gate)}" for gate in verdict.gates if gate.default),
        covers=_covers(verdict),
        unchanged=tuple(
            column.name for column in record.corpus.columns if column.disposition.startswith("kept")
        ),
        joins=JOINS.format(clipped(record.reuses, NAME_LENGTH)) if record.reuses else "",
        earlier=bool(record.earlier),
        purposes=tuple(purpose for task, purpose in PURPOSES.items() if task in useful),
    )


def _row(answer: Answer, record: ReleaseRecord) -> PageRow:
    """Return a question with its answer as printable cells."""
    gate = answer.worst
    figure = None
    if gate is not None and gate.finding is not None and gate.risk in (*_SHARES, _OWN):
        figure = row(gate.finding, outward=True, kind=_kind(gate))
    return PageRow(
        question=answer.question,
        gate=gate,
        outcome=answer.outcome,
        figure=figure,
        before=_before(gate, record),
        patients=_patients(gate, record),
        besides=_besides(answer),
    )


def _besides(answer: Answer) -> str:
    """Return the risks without a limit that the gate of a row would conceal, with their figures."""
    if answer.outcome == "not limited":
        return ""
    shown = [
        (gate.name, row(gate.finding, outward=True, kind=_kind(gate)))
        for gate in answer.gates
        if gate.outcome == "not limited" and gate.finding is not None
    ]
    texts = [f"{name} {cells.value.text} ({cells.reference})" for name, cells in shown]
    return f"Not limited: {'; '.join(texts)}." if texts else ""


def _kind(gate: Gate) -> NumberKind:
    """Return the number format of an attack that a gate judges."""
    return "score" if gate.risk in _AREAS else "share"


def _before(gate: Gate | None, record: ReleaseRecord) -> Number:
    """Return the figure of the original notes; a dash where it was not measured."""
    if gate is None or gate.inapplicable:
        return number(None, "share")
    if gate.risk == "ten_words":
        plain = next((f for f in record.findings if f.measure == _UNPROTECTED), None)
        return number(plain.value if plain else None, "share")
    if gate.risk == _OWN and gate.finding is not None:
        return number(gate.finding.control, "share")
    return number(None, "share")


def _patients(gate: Gate | None, record: ReleaseRecord) -> str:
    """Return about how many patients a share of the notes is."""
    patients = record.corpus.patients
    if gate is None or gate.risk not in _OF_NOTES or not patients:
        return ""
    if not isinstance(gate.value, int | float) or hidden_gate(gate, record.corpus.read):
        return ""
    about = round(gate.value * patients)
    shown = small().text if 0 < about < SMALL else f"{about:,}"
    return f"about {shown} of {patients:,} patients"


def _changes(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """Return what to change for each question, then for each check, that refuses the release."""
    asked = (
        (answer.question.name, gate)
        for answer in verdict.answers
        for gate in answer.gates
        if not gate.passed
    )
    checks = ((gate.name, gate) for gate in verdict.checks if not gate.passed)
    hints = dict[str, tuple[str, str]]()
    for name, gate in (*asked, *checks):
        if gate.hint:
            hints.setdefault(gate.hint, (name, gate.hint))
    return tuple(hints.values())


def default_of(gate: Gate, *, above_what: bool = True) -> str:
    """Return the default of a limit that the officer changed: "default 5 % above chance".

    above_what: whether to state what the limit is added to.
    """
    rule = Limits.read().rules("agreement").get(gate.risk)
    above = rule.above if rule and above_what else ""
    if gate.default == UNLIMITED:
        return "default: no limit"
    default = gate.default if gate.default == "0" else share(float(gate.default))
    return " ".join(filter(None, ("default", default, "above" if above else "", above)))


def _covers(verdict: Verdict) -> tuple[str, ...]:
    """Return what an agreement must say, each sentence once."""
    rules = Limits.read().rules("agreement")
    return tuple(dict.fromkeys(rules[gate.risk].covers for gate in verdict.unlimited))


def clipped(text: str, length: int) -> str:
    """Return the text on one line, cut at a word end to at most `length` characters plus an
    ellipsis.
    """
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    words = line[:length].rpartition(" ")[0]
    return (words if len(words) > length / 2 else line[:length]) + " …"


def uses(record: ReleaseRecord) -> tuple[Use, ...]:
    """Return every utility finding between floor and ceiling, by task."""
    return tuple(_use(f) for task in TASKS for f in record.findings if f.measure == task)


def _three_uses(record: ReleaseRecord) -> tuple[Use, ...]:
    by_task = {task: [f for f in record.findings if f.measure == task] for task in TASKS}
    order = "utility.sequence", "utility.vectors"
    second = next((t for t in order if any(f.value is not None for f in by_task[t])), None)
    second = second or next((t for t in order if by_task[t]), order[0])
    shown = []
    for task in ("utility.transfer", second, "utility.language_model"):
        findings = by_task[task] or [Finding(task, None, 0, why="not measured in this run")]
        measured = [f for f in findings if f.value is not None] or findings[:1]
        shown.append(_use(min(measured, key=lambda f: f.value or 0.0), of=len(findings)))
    return tuple(shown)


def _use(finding: Finding, of: int = 1) -> Use:
    scores = finding.scores or GapScores("")
    scale: NumberKind = _FORMATS.get(scores.metric, "score")
    return Use(
        task=TASKS.get(finding.measure, finding.measure),
        metric=scores.metric,
        which=", ".join(_MODELS.get(label, label) for label in finding.labels),
        share=number(finding.value, "share"),
        ends=None if finding.value is None else interval(finding.low, finding.high, "share"),
        floor=number(scores.floor, scale),
        score=number(scores.score, scale),
        ceiling=number(scores.ceiling, scale),
        of_real=number(scores.of_ceiling, "share"),
        of_real_ends=interval(scores.of_ceiling_low, scores.of_ceiling_high, "share"),
        of=of,
        why=sentence(finding.why) if finding.value is None else "",
        tested_on=finding.tested_on,
    )
