"""Judge a release: conditions with their limits, the questions they answer, and one verdict per
audience.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

from clinveil.core import Finding
from clinveil.report.limits import Audience

Plain = float | int | str | bool | None
Outcome = Literal["held", "not held", "not decided", "not limited", "does not apply"]
OUTCOMES: tuple[Outcome, ...] = (
    "not held",
    "not decided",
    "held",
    "not limited",
    "does not apply",
)
"""From the one that a reader must see first."""
CHECKS = "checks"
"""The risk of conditions that only a fault of program or input can break; they have no limit in
`limits.toml`.
"""


def refuse_infinite(value: Plain) -> None:
    """Raise ValueError for NaN and infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a report holds no NaN or infinity; use null")


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition that a release must meet for an audience.

    Attributes:
        name, question: short name, and the question that the gate answers.
        risk: key of its limit, or `CHECKS`.
        within: whether the value is within the limit, as far as the data show.
        value, limit: measured value and largest allowed one, in `unit`; the limit may be text, and
            None: not limited.
        meaning: one sentence that explains the outcome; hint: how to fix a failure.
        power: smallest breach that the gate can detect on this data, or a statement that it can
            detect none.
        by_construction: the gate can fail only through a program error.
        undecided: too few cases, or not measured: the gate could not have failed on this data.
        inapplicable: the risk does not exist for this kind of release or these notes; `meaning` is
            the reason.
        strict: a gate that is not decided refuses the release.
        default: the limit of the package where the officer changed it, as text; otherwise "".
        finding: the attack or task that decided, if there is one.
    """

    name: str
    question: str
    risk: str
    within: bool
    value: Plain
    limit: Plain
    meaning: str
    hint: str
    unit: str = ""
    power: str = ""
    by_construction: bool = False
    undecided: bool = False
    inapplicable: bool = False
    strict: bool = False
    default: str = ""
    finding: Finding | None = None

    def __post_init__(self) -> None:
        refuse_infinite(self.value)
        refuse_infinite(self.limit)

    @property
    def outcome(self) -> Outcome:
        """The outcome as text. A gate that could not fail is not held."""
        if self.inapplicable:
            return "does not apply"
        if self.limit is None:
            return "not limited"
        if not self.within:
            return "not held"
        return "not decided" if self.undecided else "held"

    @property
    def passed(self) -> bool:
        """Whether the release may leave as far as this gate is concerned."""
        return self.outcome not in (("not held", "not decided") if self.strict else ("not held",))


@dataclass(frozen=True, slots=True)
class Question:
    """A question of page one, and the risks that answer it."""

    name: str
    asks: str
    risks: tuple[str, ...]


@cache
def questions() -> tuple[Question, ...]:
    """Return the questions of page one, in order."""
    text = files("clinveil.report").joinpath("questions.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)["question"]
    return tuple(Question(e["name"], e["asks"], tuple(e["risks"])) for e in entries)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question: the worst of its gates first.

    Attributes:
        gates: those of its risks, the worst first; empty if nothing was measured.
    """

    question: Question
    gates: tuple[Gate, ...]

    @property
    def worst(self) -> Gate | None:
        """The gate that decides."""
        return self.gates[0] if self.gates else None

    @property
    def outcome(self) -> Outcome:
        """Outcome of the gate that decides."""
        return self.worst.outcome if self.worst else "does not apply"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a release may leave to an audience, and why.

    Attributes:
        gates: all conditions, with the limits of this audience.
    """

    audience: Audience
    gates: tuple[Gate, ...] = field(repr=False)

    @property
    def may_leave(self) -> bool:
        """Whether no gate refuses the release; without gates it may not leave."""
        return bool(self.gates) and all(gate.passed for gate in self.gates)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """An answer to each question of page one, in order."""
        return tuple(Answer(question, self.on(question.risks)) for question in questions())

    def on(self, risks: Sequence[str]) -> tuple[Gate, ...]:
        """Return the gates on these risks, the worst first."""
        return tuple(sorted((gate for gate in self.gates if gate.risk in risks), key=_rank))

    @property
    def checks(self) -> tuple[Gate, ...]:
        """The checks of the program, the worst first."""
        return self.on((CHECKS,))

    @property
    def refusing(self) -> tuple[str, ...]:
        """Names of the questions, and of the checks, that refuse the release."""
        asked = [a.question.name for a in self.answers if any(not g.passed for g in a.gates)]
        return (*asked, *(gate.name for gate in self.checks if not gate.passed))

    @property
    def reasons(self) -> str:
        """What refuses the release, as the end of a sentence: ": what is not held; not decided:
        the rest".
        """
        open_questions = {
            answer.question.name for answer in self.answers if answer.outcome == "not decided"
        }
        broken = [name for name in self.refusing if name not in open_questions]
        undecided = [name for name in self.refusing if name in open_questions]
        said = f": {listed(broken)}" if broken else ""
        return f"{said}; not decided: {listed(undecided)}" if undecided else said

    @property
    def undecided(self) -> tuple[str, ...]:
        """Names of the questions that are not decided and do not refuse the release."""
        return tuple(
            answer.question.name
            for answer in self.answers
            if any(gate.outcome == "not decided" and gate.passed for gate in answer.gates)
        )

    @property
    def unlimited(self) -> tuple[Gate, ...]:
        """Measured risks without a limit, in the order of the questions: what an agreement must
        cover.
        """
        found = (gate for answer in self.answers for gate in answer.gates)
        return tuple(gate for gate in found if gate.outcome == "not limited")

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        if not self.gates:
            return "Must not leave: nothing was checked."
        to = "to recipients under an agreement" if self.audience == "agreement" else "to the public"
        if not self.may_leave:
            return f"Must not leave {to}{self.reasons}."
        if self.undecided:
            return f"May leave {to}; not decided: {listed(self.undecided)}."
        return f"May leave {to}: every limit is held."


def overall(verdicts: Sequence[Verdict]) -> str:
    """Return the verdict for the audience of a release, and what differs for the public."""
    first = verdicts[0].sentence
    rest = [one for one in verdicts[1:] if one.audience == "public" and verdicts[0].may_leave]
    if not rest:
        return first
    public = rest[0]
    if public.may_leave:
        return f"{first} The limits for the public are held too."
    return f"{first} Not for the public{public.reasons}."


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names as a list, the first ones by name: "a, b and 3 more"."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _rank(gate: Gate) -> tuple[int, float]:
    """Return a sort key: the worst outcome first, then the gate that uses most of its limit."""
    return OUTCOMES.index(gate.outcome), -_used(gate)


def _used(gate: Gate) -> float:
    """Return how much of its limit a gate uses: 0 at chance, 1 at the limit; without a limit, how
    far the value is above chance.
    """
    value = gate.value
    limit = gate.limit
    if not isinstance(value, int | float) or isinstance(limit, str):
        return 0.0
    if gate.unit.startswith("P value"):
        return float(limit or 0.0) / max(float(value), 1e-9)
    is_of_finding = gate.finding is not None and gate.finding.value == value
    chance = gate.finding.chance or 0.0 if gate.finding and is_of_finding else 0.0
    above = float(value) - chance
    if limit is None:
        return above
    room = float(limit) - chance
    if room > 0:
        return above / room
    return math.inf if above > 0 else 0.0


def tally(outcomes: Iterable[str]) -> str:
    """Return how many gates had each outcome: "20 held, 1 not decided, 3 not limited"."""
    count = Counter(outcomes)
    order = ("not held", "not decided", "held", "not limited")
    return ", ".join(f"{count[name]} {name}" for name in order if count[name]) or "no limit judged"
