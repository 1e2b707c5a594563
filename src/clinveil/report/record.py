"""Define `ReleaseRecord`: everything that a report shows, as typed values.

The record contains nothing that the report may not print, except small counts, which the page
hides. It is stored in the vault so that the report can be rendered again without the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from clinveil.core import Finding, InputError
from clinveil.report.verdict import Gate, Plain, Verdict, refuse_infinite

SCHEMA = "clinveil.report/4"
Mark = Literal["replaced", "kept", "dropped", "phi", "unknown", "masked"]


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and its value.

    `unit` names what a number counts ("patients", "notes", …): counts of people and notes are
    hidden when small.
    """

    label: str
    value: Plain
    unit: str = ""

    def __post_init__(self) -> None:
        refuse_infinite(self.value)

    @property
    def off(self) -> bool:
        """Whether the value is that of a setting that is not in use."""
        return self.value is False or self.value in (None, "", "none")


@dataclass(frozen=True, slots=True)
class TokenRow:
    """What became of the source tokens of one class (words, numbers, punctuation, other).

    Attributes:
        seen: all of them, the denominator: the sum of the four fates that follow.
        replaced: written as a random draw. masked: numbers written as #-shapes. dropped: not
            written.
        kept: written as they were.
        unknown: of all, the words that the channel has no row for (drawn from a pool of common
            words, or dropped).
        self_replaced: of those replaced, how many came out as the word that went in.

    Raises:
        ValueError: the fates do not add up to `seen`, or a part is larger than its whole.
    """

    kind: str
    seen: int
    replaced: int = 0
    masked: int = 0
    dropped: int = 0
    kept: int = 0
    unknown: int = 0
    self_replaced: int = 0

    def __post_init__(self) -> None:
        fates = (self.replaced, self.masked, self.dropped, self.kept)
        if sum(fates) != self.seen or min(fates) < 0:
            raise ValueError(
                f"the token accounting of {self.kind} does not balance: {sum(fates)} of {self.seen}"
            )
        if not 0 <= self.self_replaced <= self.replaced or not 0 <= self.unknown <= self.seen:
            raise ValueError(
                f"the token accounting of {self.kind} has a part larger than its whole"
            )

    @property
    def released(self) -> int:
        """Tokens written to the release."""
        return self.seen - self.dropped


@dataclass(frozen=True, slots=True)
class Column:
    """A source column and what became of it ("text", "id, replaced", "kept", "dropped", …)."""

    name: str
    disposition: str


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """The data in numbers. `patients` is None where the source names no patients (each note is then
    its own).

    Raises:
        ValueError: rows read do not equal notes written and rows skipped.
    """

    read: int
    notes: int
    patients: int | None
    tokens: int
    types: int
    skipped: Mapping[str, int]
    columns: tuple[Column, ...] = ()
    more: tuple[Fact, ...] = ()

    def __post_init__(self) -> None:
        if self.read != self.notes + sum(self.skipped.values()):
            raise ValueError(
                "the row accounting does not balance: read is not written plus skipped"
            )


@dataclass(frozen=True, slots=True)
class PhiCount:
    """Spans of one PHI label that the detectors found, what the label means, and how they were
    treated.
    """

    label: str
    what: str
    found: int
    treated: str


@dataclass(frozen=True, slots=True)
class AlignedToken:
    """A source token and the released one at its place; "" where there is none. A source "\\n"
    breaks the line.
    """

    source: str
    released: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class AlignedNote:
    """A note before and after, token by token."""

    title: str
    tokens: tuple[AlignedToken, ...]


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """Everything that a report of one release shows.

    Attributes:
        title, run, created, version: name of the release, run id, ISO 8601 time, clinveil's
            version.
        accounting: counts of tokens by class; empty for kinds that do not replace every token.
        phi: identifiers detected, by label; None where no identifier detection ran.
        kind: "obfuscated", "deidentified" or "synthetic". about: what the notes are, or
            "".
        excerpts: passages of released text, about 25 words each.
        provenance: hashes, key commitment, determinism, versions of clinveil and of Python.
        warnings, not_tried: one sentence each. test_seed: whether the key was derived from a public
            seed.
        signing_key: fingerprint of the public key that signed the manifest.
        verdicts: the verdict for the audience of this release, then those for others.
        recipient, purpose, review_on: who gets it, for what, and when the decision is reviewed (an
            ISO 8601 date), as the officer wrote them; or "".
        listed: share of the patients that the known-patient list has; None without a list.
        earlier: other releases of the same notes under another key: run and kind of each.
        reuses: run of the release that this one joins under the same key, or "".
    """

    title: str
    run: str
    created: str
    version: str
    corpus: CorpusFacts
    accounting: tuple[TokenRow, ...]
    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]
    phi: tuple[PhiCount, ...] | None = None
    settings: tuple[Fact, ...] = ()
    provenance: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    signing_key: str = ""
    test_seed: bool = False
    recipient: str = ""
    purpose: str = ""
    review_on: str = ""
    listed: float | None = None
    kind: str = "obfuscated"
    about: str = ""
    excerpts: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    reuses: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict for the audience of this release."""
        return self.verdicts[0]

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates with the limits of the audience of this release."""
        return self.verdict.gates

    @property
    def refused(self) -> bool:
        """Whether nothing may leave to the audience of this release."""
        return not self.verdict.may_leave


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(ReleaseRecord)


def to_json(record: ReleaseRecord) -> str:
    """Return the record as JSON."""
    gates = {"__all__": {"finding"}}
    left_out = {"findings": True, "verdicts": {"__all__": {"gates": gates}}}
    data = _adapter().dump_python(record, mode="json", exclude=left_out)
    data["findings"] = [finding.as_dict() for finding in record.findings]
    for shown, verdict in zip(data["verdicts"], record.verdicts, strict=True):
        for entry, gate in zip(shown["gates"], verdict.gates, strict=True):
            entry["finding"] = gate.finding.as_dict() if gate.finding else None
    return json.dumps({"schema": SCHEMA, **data}, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(text: Any, where: str = "") -> ReleaseRecord:
    """The record of `to_json`. Raises InputError, without a word of the content, if it is not one
    of this version.
    """
    try:
        data = json.loads(text)
        if data.pop("schema") != SCHEMA:
            raise ValueError
        data["findings"] = [Finding.from_dict(finding) for finding in data["findings"]]
        for gate in (gate for verdict in data["verdicts"] for gate in verdict["gates"]):
            if gate["finding"] is not None:
                gate["finding"] = Finding.from_dict(gate["finding"])
        record: ReleaseRecord = _adapter().validate_python(data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        what = f"is damaged, or not a report record of this version ({SCHEMA})"
        raise InputError(
            what, where=where, hint="restore it from a backup, or make the release again"
        ) from None
    return record
