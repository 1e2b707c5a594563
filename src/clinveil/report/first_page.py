"""The first page of the report: what leaves, utility, risks, gates. It must fit one printed A4 page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from clinveil.core.finding import Finding
from clinveil.core.words import Kind
from clinveil.report.cells import Row, row
from clinveil.report.numerals import Number, interval, number
from clinveil.report.record import Gate, ReleaseRecord, all_clear
from clinveil.report.risks import NAMES, RECIPIENTS, TARGETS, Verdict, strongest, verdict

EXCERPTS, EXCERPT_LENGTH = 3, 190  # characters; longer text would not fit the page
LISTED, NAME_LENGTH = 3, 52  # gates named one by one, and characters of their names
KINDS = {
    "obfuscated": "Running text in which a similar or a common word, drawn under a secret key, replaces every word.",
    "coded": "Codes, not readable text: each word becomes the code of a cluster of words, shuffled within its note.",
    "deidentified": "Readable notes in which surrogates replace the identifiers that the detectors found.",
    "synthetic": "Notes written by a language model that was trained on the real notes.",
}
TASKS = {
    "utility.transfer": "Train a classifier on the release, apply it to real notes",
    "utility.sequence": "Label sentences: train on the release, apply to real notes",
    "utility.vectors": "Word vectors of the release, against human similarity scores",
    "utility.language_model": "Language model of the release, predicting real notes",
    "utility.within": "Train and test a classifier on released text",
}
TERMS = {
    "shadow vectors": "Shadow vectors: trained by the recipient on similar notes.",
    "known pair": "Known pairs: notes held in both forms.",
    "planted names": "Planted names: invented, added for this test.",
}
SHOWN_LIMITS = 6
NOT_APPLICABLE = "Does not apply"
RECALL = "known-patient list{} only; what detection missed is not measured"
_MODELS = {"tfidf-lr": "TF-IDF and logistic regression", "lr": "logistic regression", "lstm": "LSTM", "cnn": "CNN"}
_FORMATS: dict[str, Kind] = {"bits per word": "length"}
# The bars, drawn as inline SVG; colours come from the CSS of the page.
WIDTH, HEIGHT = 120, 12
_SVG = '<svg class="bar" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{label}">{shapes}</svg>'
_TRACK = '<rect class="track" x="0" y="3" width="{w}" height="6"/>'
_FILL = '<rect class="{kind}" x="0" y="3" width="{x:.1f}" height="6"/>'
_RANGE = '<path class="range" d="M{low:.1f} 6H{high:.1f}"/>'
_TICK = '<path class="limit" d="M{x:.1f} 0V12"/>'
_PAIRS = tuple(h for h in RECIPIENTS if h.startswith("pairs-"))
_TEXT = ("names", "planted names", "words", "rare words")
_MORE_KNOWN = ("note by the patient's other notes", "note by its whole text", "note by public knowledge")
_IDENTIFIERS = ("own identifiers", "copies", "membership")


@dataclass(frozen=True, slots=True)
class Use:
    """One utility figure: score of the release between floor and ceiling, or the reason why no share is printed.

    `share` is the share of the gap between floor and ceiling, `of_real` the score divided by the ceiling; both with
    their interval. `of` is the number of findings of this task; the lowest share is shown.
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


@dataclass(frozen=True, slots=True)
class Risk:
    """One risk: the strongest gated adversary, its figure and the verdict; without a figure the reason why."""

    target: str
    adversary: str = ""
    row: Row | None = None
    verdict: Verdict | None = None
    why: str = ""

    @property
    def not_above(self) -> str:
        """What a risk above the threshold does not exceed: chance, or the control where chance is unknown; or ""."""
        if self.row is None or self.verdict != "above the threshold":
            return ""
        found = self.row.finding
        low = found.value if found.low is None else found.low
        control = found.control if found.chance is None and found.control_kind == "negative" else None
        for name, level in (("chance", found.chance), ("the control", control)):
            if level is not None and low is not None and low <= level:
                return name
        return ""


MISSED = Risk(
    "Read identifiers that detection missed", why="Not measured on these notes: clinveil validate estimates it."
)


REPEATED = Risk(
    "Recover a patient's name",
    why=f"{NOT_APPLICABLE}: no word replaces a source word. Names that the model repeats are searched for by gates.",
)


@dataclass(frozen=True, slots=True)
class GateList:
    """Gates of one outcome: the first ones, and how many more."""

    outcome: str
    gates: tuple[Gate, ...]
    more: int


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
    limits: tuple[Gate, ...]  # passed gates with a limit above 0 on a share, the largest limits first

    @property
    def terms(self) -> list[str]:
        """Explanations of the terms that risks and gates on this page use."""
        used = [f"{risk.target} {risk.adversary}" for risk in self.risks]
        used += [gate.name for listed in self.gates for gate in listed.gates]
        return [meaning for term, meaning in TERMS.items() if term in " ".join(used).casefold()]

    @property
    def above(self) -> int:
        """Number of risks above the threshold."""
        return sum(risk.verdict == "above the threshold" for risk in self.risks)

    @property
    def not_better(self) -> int:
        """Number of risks above the threshold although the attack does not exceed chance or its control."""
        return sum(bool(risk.not_above) for risk in self.risks)

    @property
    def without_figure(self) -> int:
        """Number of risks that were not measured, without those that do not apply."""
        return sum(risk.row is None and not risk.why.startswith(NOT_APPLICABLE) for risk in self.risks)


def first_page(record: ReleaseRecord) -> FirstPage:
    """Return the first page of a record, in its edition."""
    passed = [gate for gate in record.gates if gate.outcome == "passed" and gate.unit.split(" ")[0] == "share"]
    limits = {gate.name: gate for gate in passed if isinstance(gate.threshold, float) and gate.threshold > 0}
    largest = sorted(limits.values(), key=lambda gate: -float(gate.threshold or 0))[:SHOWN_LIMITS]
    return FirstPage(
        state="refused" if record.refused else "clear" if all_clear(record.gates) else "open",
        headline=_headline(record),
        kind=record.about or KINDS.get(record.kind, ""),
        excerpts=tuple(clipped(text, EXCERPT_LENGTH) for text in record.excerpts[:EXCERPTS]),
        uses=_three_uses(record),
        risks=_risks(record),
        others=_others(record),
        unchanged=tuple(column.name for column in record.corpus.columns if column.disposition.startswith("kept")),
        gates=_gate_lists(record.gates),
        limits=() if record.refused else tuple(largest),
    )


def clipped(text: str, length: int) -> str:
    """Return the text on one line, cut at a word end to at most `length` characters plus an ellipsis."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    words = line[:length].rpartition(" ")[0]
    return (words if len(words) > length / 2 else line[:length]) + " …"


def sentence(text: str) -> str:
    """Return the text with a capital letter and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _headline(record: ReleaseRecord) -> str:
    failed = [gate for gate in record.gates if not gate.passed]
    if failed:
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        return f"Refused. Failed gate: {clipped(failed[0].name, NAME_LENGTH)}{more}"
    off = sum(gate.switched_off for gate in record.gates)
    if off:
        return f"Released with {off} gate{'s'[: off != 1]} switched off"
    return "No gate failed, none is switched off" if record.gates else "No gate was run"


def _gate_lists(gates: Sequence[Gate]) -> tuple[GateList, ...]:
    outcomes = ("failed", "switched off", "no power")
    lists = {outcome: tuple(gate for gate in gates if gate.outcome == outcome) for outcome in outcomes}
    return tuple(GateList(name, of[:LISTED], max(0, len(of) - LISTED)) for name, of in lists.items() if of)


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
        findings = by_task[task] or [Finding(task, None, 0, detail={"why": "not measured in this run"})]
        measured = [f for f in findings if f.value is not None] or findings[:1]
        shown.append(_use(min(measured, key=lambda f: f.value or 0.0), of=len(findings)))
    return tuple(shown)


def _use(finding: Finding, of: int = 1) -> Use:
    detail, named = finding.detail, ("label", "list", "model")
    metric = str(detail.get("metric", ""))

    def raw(key: str, kind: Kind) -> Number:
        value = detail.get(key)
        return number(value if isinstance(value, int | float) else None, kind)

    scale: Kind = _FORMATS.get(metric, "score")
    ends = [detail.get(f"of_ceiling_{end}") for end in ("low", "high")]
    low, high = (float(end) if isinstance(end, int | float) else None for end in ends)
    return Use(
        task=TASKS.get(finding.measure, finding.measure),
        metric=metric,
        which=", ".join(_MODELS.get(str(detail[key]), str(detail[key])) for key in named if detail.get(key)),
        share=number(finding.value, "share"),
        ends=None if finding.value is None else interval(finding.low, finding.high, "share"),
        floor=raw("floor", scale),
        score=raw("score", scale),
        ceiling=raw("ceiling", scale),
        of_real=raw("of_ceiling", "share"),
        of_real_ends=interval(low, high, "share"),
        of=of,
        why=sentence(str(detail["why"])) if finding.value is None else "",
    )


def _risks(record: ReleaseRecord) -> tuple[Risk, ...]:
    """Names, ten words, and: known pairs where words are replaced one by one, else identifiers and copies."""
    gated = [f for f in record.findings if f.detail.get("gated")]

    def top(targets: Sequence[str], holdings: Sequence[str], but: Finding | None = None) -> Finding | None:
        judged = strongest((f for f in gated if f is not but), targets, holdings)
        return judged or strongest(record.findings, targets, holdings)

    names = top(("names", "planted names"), RECIPIENTS)
    without_attack = {"deidentified": MISSED, "synthetic": REPEATED}
    if record.kind in ("obfuscated", "coded"):
        third = _risk("Recover text, given known pairs", top(_TEXT, _PAIRS, names), record)
        third = replace(third, target=f"{third.target}, by known pairs") if third.row else third
    else:
        third = _risk("Find identifiers or copied passages", top(_IDENTIFIERS, RECIPIENTS), record)
    return (
        without_attack.get(record.kind) or _risk("Recover a patient's name", names, record),
        _risk("Find a note from ten words", top(("note by ten words",), RECIPIENTS), record),
        third,
    )


def _others(record: ReleaseRecord) -> tuple[Risk, ...]:
    """What else recipients link, as far as it was measured: more than a fragment of a note is needed."""
    tops = (strongest(record.findings, (target,), RECIPIENTS) for target in _MORE_KNOWN)
    return tuple(_risk("", top, record) for top in tops if top is not None and top.value is not None)


def _risk(what: str, finding: Finding | None, record: ReleaseRecord) -> Risk:
    if finding is None:
        return Risk(what, why="Not measured.")
    adversary = NAMES.get(str(finding.detail.get("adversary")), "")
    if finding.value is None:
        return Risk(what, adversary, why=sentence(str(finding.detail["why"])))
    target, shown = str(finding.detail.get("target")), row(finding, record.edition, kind="share")
    if target == "own identifiers":
        listed, patients = finding.detail.get("in_release"), record.corpus.patients
        covers = f" ({number(int(listed) / patients, 'share').text} of the patients)" if listed and patients else ""
        adversary = f"{adversary}; {RECALL.format(covers)}"
    elif target == "copies":
        span = f"; runs of {finding.detail['span']} words" if "span" in finding.detail else ""
        adversary = f"{adversary}{span}; control {shown.control.text} ({finding.control_is.partition(',')[0]})"
    return Risk(TARGETS.get(target, what), adversary, shown, verdict(finding, record.risk_threshold))


def gap_bar(share: Number, ends: tuple[Number, Number] | None) -> Markup:
    """Return a bar from floor (0) to ceiling (1) filled to the share; empty where there is none."""
    if share.value is None or share.value < 0:
        return Markup("")
    shapes = [Markup(_TRACK).format(w=WIDTH), Markup(_FILL).format(kind="share", x=_at(share.value, 1))]
    shapes += _range(ends, 1)
    return _drawn(f"{share.text} of the way from floor to ceiling", shapes)


def risk_bar(shown: Row, threshold: float, above: bool) -> Markup:
    """Return a bar of a risk with its interval and the threshold; empty where the number is hidden."""
    if shown.hidden or shown.value.value is None:
        return Markup("")
    high = shown.ends[1].value if shown.ends else None
    top = min(1.0, max(2 * threshold, 1.1 * float(high if high is not None else shown.value.value), 0.01))
    fill = Markup(_FILL).format(kind="over" if above else "under", x=_at(shown.value.value, top))
    limit = Markup(_TICK).format(x=_at(threshold, top))
    shapes = [Markup(_TRACK).format(w=WIDTH), fill, *_range(shown.ends, top), limit]
    return _drawn(f"{shown.value.text}; the line marks the threshold", shapes)


def _at(value: float, top: float) -> float:
    return WIDTH * min(max(value / top, 0.0), 1.0)


def _range(ends: tuple[Number, Number] | None, top: float) -> list[Markup]:
    if ends is None or ends[0].value is None or ends[1].value is None:
        return []
    return [Markup(_RANGE).format(low=_at(ends[0].value, top), high=_at(ends[1].value, top))]


def _drawn(label: str, shapes: list[Markup]) -> Markup:
    return Markup(_SVG).format(w=WIDTH, h=HEIGHT, label=label, shapes=Markup("").join(shapes))
