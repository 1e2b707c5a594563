"""The first page of the report: what leaves, utility, risks, gates. It must fit one printed A4
page.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from clinveil.core import Finding, GapScores, NumberKind
from clinveil.report.cells import FindingRow, sentence
from clinveil.report.numerals import Number, interval, number
from clinveil.report.record import Gate, ReleaseRecord, all_clear
from clinveil.report.risks import TARGETS, Risk, risk
from clinveil.stats import is_no_evidence

# characters; longer text would not fit the page
EXCERPTS = 2
EXCERPT_LENGTH = 190
# gates named one by one, and characters of their names
LISTED = 3
NAME_LENGTH = 52
LISTS = "failed", "switched off", "no power"  # outcomes that page one lists
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
    "utility.transfer": "Train a classifier on the release, apply it to real notes",
    "utility.sequence": "Label sentences: train on the release, apply to real notes",
    "utility.vectors": "Word vectors of the release, against human similarity scores",
    "utility.language_model": "Language model of the release, predicting real notes",
    "utility.within": "Train and test a classifier on released text",
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
    "This release joins release {} under the same key, and both must be treated as one: gates and"
    " figures here cover the notes of this one alone."
)
NOT_APPLICABLE = "Does not apply"
_MODELS = {
    "tfidf-lr": "TF-IDF and logistic regression",
    "lr": "logistic regression",
    "lstm": "LSTM",
    "cnn": "CNN",
}
_FORMATS: dict[str, NumberKind] = {"bits per word": "length"}
# The bars, drawn as inline SVG; colours come from the CSS of the page.
WIDTH = 120
HEIGHT = 12
_SVG = (
    '<svg class="bar" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img"'
    ' aria-label="{label}">{shapes}</svg>'
)
_TRACK = '<rect class="track" x="0" y="3" width="{w}" height="6"/>'
_FILL = '<rect class="{kind}" x="0" y="3" width="{x:.1f}" height="6"/>'
_RANGE = '<path class="range" d="M{low:.1f} 6H{high:.1f}"/>'
_TICK = '<path class="limit" d="M{x:.1f} 0V12"/>'
_NAMES = ("names", "planted names")
_WORDS = ("words", "rare words")
_TEN_WORDS = ("note by ten words",)
_LINKED = ("note by the patient's other notes", "note by public knowledge")
_IDENTIFIERS = ("own identifiers", "copies")
_MEMBERSHIP = ("membership",)


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
    def warning(self) -> str:
        """The task and its scores where the release is worse than the floor, otherwise ""."""
        if self.share.value is None or self.share.value >= 0:
            return ""
        scores = (
            f"release {self.score.text}, floor {self.floor.text}, real notes {self.ceiling.text}"
        )
        return f"{self.task} ({self.metric}): {scores}"


MISSED = Risk(
    "Read identifiers that detection missed",
    why="Not measured on these notes: clinveil validate estimates it.",
)


REPEATED = Risk(
    "Recover a patient's name",
    why=(
        f"{NOT_APPLICABLE}: no word replaces a source word. Names that the model repeats are"
        " searched for by gates."
    ),
)


@dataclass(frozen=True, slots=True)
class GateList:
    """Gates of one outcome: the first ones, and how many more."""

    outcome: str
    gates: tuple[Gate, ...]
    unlisted: int


@dataclass(frozen=True, slots=True)
class FirstPage:
    """Everything on the first page that is computed from the record."""

    state: str  # "refused", "open" (a gate is switched off, or there is none) or "clear"
    headline: str
    kind: str
    excerpts: tuple[str, ...]
    uses: tuple[Use, ...]
    risks: tuple[Risk, ...]
    others: tuple[Risk, ...]
    unchanged: tuple[str, ...]
    gates: tuple[GateList, ...]
    joins: str  # the earlier release under the same key, in one sentence, or ""
    # What the release can train: no task without evidence or worse than the floor.
    purposes: tuple[str, ...]

    @property
    def terms(self) -> list[str]:
        """Explanations of the terms that risks and gates on this page use."""
        used = [f"{risk.target} {risk.adversary}" for risk in self.risks]
        used += [gate.name for listed in self.gates for gate in listed.gates]
        return [meaning for term, meaning in TERMS.items() if term in " ".join(used).casefold()]

    @property
    def tested_on(self) -> str:
        """The notes that the first utility figure was tested on; "" without one."""
        return next((use.tested_on for use in self.uses if use.tested_on), "")

    @property
    def judged(self) -> tuple[Risk, ...]:
        """The risks that the headline counts: those of the table, and the others that were
        measured.
        """
        return self.risks + self.others

    @property
    def above(self) -> int:
        """Number of risks above the threshold."""
        return sum(risk.verdict == "above the threshold" for risk in self.judged)

    @property
    def not_better(self) -> int:
        """Number of risks above the threshold although the attack does not exceed chance or its
        control.
        """
        return sum(bool(risk.not_above) for risk in self.judged)

    @property
    def without_figure(self) -> int:
        """Number of risks that were not measured, without those that do not apply."""
        return sum(
            risk.row is None and not risk.why.startswith(NOT_APPLICABLE) for risk in self.risks
        )


def first_page(record: ReleaseRecord) -> FirstPage:
    """Return the first page of a record."""
    table, others = _risks(record)
    worse = {
        f.measure
        for f in record.findings
        if is_no_evidence(f) or (f.value is not None and f.value < 0)
    }
    by_outcome = {
        outcome: [gate for gate in record.gates if gate.outcome == outcome] for outcome in LISTS
    }
    return FirstPage(
        state="refused" if record.refused else "clear" if all_clear(record.gates) else "open",
        headline=_headline(record),
        kind=record.about or KINDS.get(record.kind, ""),
        excerpts=tuple(clipped(text, EXCERPT_LENGTH) for text in record.excerpts[:EXCERPTS]),
        uses=_three_uses(record),
        risks=table,
        others=others,
        unchanged=tuple(
            column.name for column in record.corpus.columns if column.disposition.startswith("kept")
        ),
        gates=tuple(
            GateList(k, tuple(v[:LISTED]), max(0, len(v) - LISTED))
            for k, v in by_outcome.items()
            if v
        ),
        joins=JOINS.format(clipped(record.reuses, NAME_LENGTH)) if record.reuses else "",
        purposes=tuple(purpose for task, purpose in PURPOSES.items() if task not in worse),
    )


def clipped(text: str, length: int) -> str:
    """Return the text on one line, cut at a word end to at most `length` characters plus an
    ellipsis.
    """
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    words = line[:length].rpartition(" ")[0]
    return (words if len(words) > length / 2 else line[:length]) + " …"


def _headline(record: ReleaseRecord) -> str:
    failed = [gate for gate in record.gates if not gate.passed]
    if failed:
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        return f"Refused. Failed gate: {clipped(failed[0].name, NAME_LENGTH)}{more}"
    off = sum(gate.switched_off for gate in record.gates)
    if off:
        return f"Released with {off} gate{'s'[: off != 1]} switched off"
    return "No gate failed, none is switched off" if record.gates else "No gate was run"


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


def _risks(record: ReleaseRecord) -> tuple[tuple[Risk, ...], tuple[Risk, ...]]:
    """Return the risks of the table, and all others that were measured.

    The table: names, ten words, words or copies, and other information or membership.
    """
    by_word = record.kind == "obfuscated"
    targets = _WORDS if by_word else _IDENTIFIERS
    third = risk(
        "Find words, given known pairs" if by_word else "Find identifiers or copies",
        targets,
        record,
    )
    without_attack = {"deidentified": MISSED, "synthetic": REPEATED}
    names = without_attack.get(record.kind) or risk("Recover a patient's name", _NAMES, record)
    written = record.kind == "synthetic"
    last = (
        "Tell training patients from others"
        if written
        else "Find a note from other information on the patient"
    )
    fourth: tuple[str, ...] = _MEMBERSHIP if written else _LINKED
    shown = (*_NAMES, *_TEN_WORDS, *targets, *fourth)
    others = [risk("", (name,), record) for name in TARGETS if name not in shown]
    table = (
        names,
        risk("Find a note from ten words", _TEN_WORDS, record),
        third,
        risk(last, fourth, record),
    )
    return table, tuple(other for other in others if other.row)


def gap_bar(share: Number, ends: tuple[Number, Number] | None) -> Markup:
    """Return a bar from floor (0) to ceiling (1) filled to the share; empty where there is none."""
    if share.value is None or share.value < 0:
        return Markup("")
    shapes = [
        Markup(_TRACK).format(w=WIDTH),
        Markup(_FILL).format(kind="share", x=_at(share.value, 1)),
    ]
    shapes += _range(ends, 1)
    label = f"{share.text} of the way from floor to ceiling"
    return Markup(_SVG).format(w=WIDTH, h=HEIGHT, label=label, shapes=Markup("").join(shapes))


def risk_bar(shown: FindingRow, threshold: float, above: bool) -> Markup:
    """Return a bar of a risk with its interval and the threshold; empty where the number is
    hidden.
    """
    if shown.hidden or shown.value.value is None:
        return Markup("")
    high = shown.ends[1].value if shown.ends else None
    top = min(
        1.0, max(2 * threshold, 1.1 * float(high if high is not None else shown.value.value), 0.01)
    )
    fill = Markup(_FILL).format(kind="over" if above else "under", x=_at(shown.value.value, top))
    limit = Markup(_TICK).format(x=_at(threshold, top))
    shapes = [Markup(_TRACK).format(w=WIDTH), fill, *_range(shown.ends, top), limit]
    label = f"{shown.value.text}; the line marks the threshold"
    return Markup(_SVG).format(w=WIDTH, h=HEIGHT, label=label, shapes=Markup("").join(shapes))


def _at(value: float, top: float) -> float:
    return WIDTH * min(max(value / top, 0.0), 1.0)


def _range(ends: tuple[Number, Number] | None, top: float) -> list[Markup]:
    if ends is None or ends[0].value is None or ends[1].value is None:
        return []
    return [Markup(_RANGE).format(low=_at(ends[0].value, top), high=_at(ends[1].value, top))]
