"""Audit log of a vault: the treatment of every span of every note, without any text of the notes.

There is one file per run, `audit-0001.jsonl` and so on. Each line ends with the SHA-256 of itself
and the previous line, across files, so a changed, deleted or inserted line breaks the chain from
there on. The last line of a run is sealed with the run's key: the chain cannot be rewritten without
the key. Truncation at the end of the log cannot be detected from the log itself; keep a copy of the
last seal (`deidentify.json`, `clinveil verify`) elsewhere.

A note is identified by a keyed reference, never by its id. A span is recorded with its offsets,
label, detector, reason, score, treatment and the length of its replacement. A reason that contains
the text of its span is left out, as an external detector may have put it there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from clinveil.core import InputError, Key, Span, clear_leftovers
from clinveil.phi.treatment.policy import TreatedSpan

NAME = re.compile(r"audit-(\d{4,})\.jsonl")
_START = "0" * 64
_LINE = re.compile(r'(?P<body>\{.*),"chain":"(?P<chain>[0-9a-f]{64})"\}\n', re.S)


def reference(key: Key, note_id: str) -> str:
    """Return the reference of a note in the log; it can be linked to the note only with the key."""
    stream = key.stream("audit note", note_id)
    return f"{stream.uint64():016x}{stream.uint64():016x}"


def note_line(
    key: Key, note_id: str, text: str, spans: Sequence[Span], treated: Sequence[TreatedSpan]
) -> str:
    """Return the line of one note for `Chain.add`; `spans` in code points of the source text."""
    treatments = []
    for span, item in zip(spans, treated, strict=True):
        original = text[span.start : span.end].casefold()
        why = span.why.casefold()
        shown = original in why or any(len(word) > 3 and word in why for word in original.split())
        source = [span.detector, "" if shown else span.why, round(span.score, 4)]
        treatments.append(
            [span.start, span.end, span.label, *source, item.action.value, len(item.text)]
        )
    return _body({"note": reference(key, note_id), "spans": treatments})


class Chain:
    """Writes the lines of one run.

    Args:
        file: the log. before: the last chain value of the previous run, "" for the first run.
    """

    def __init__(self, file: TextIO, before: str = "") -> None:
        self._file = file
        self.head = before or _START

    def begin(self, event: str, fields: Mapping[str, Any]) -> None:
        """Write the first line of a run: its time and settings."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.write({"event": event, "time": now, "schema": "clinveil.audit/1", **fields})

    def end(self, key: Key, fields: Mapping[str, Any]) -> None:
        """Write the last line of a run, sealed with the key."""
        self.write({"event": "end", **fields, "seal": _seal(key, self.head)})

    def write(self, line: Mapping[str, Any]) -> None:
        """Write one line."""
        self.add(_body(line))

    def add(self, body: str) -> None:
        """Write a line that is already JSON, without its closing brace."""
        self.head = _link(self.head, body)
        self._file.write(f'{body},"chain":"{self.head}"}}\n')


def _body(line: Mapping[str, Any]) -> str:
    return json.dumps(line, separators=(",", ":"))[:-1]  # `Chain.add` closes the brace


def _link(before: str, body: str) -> str:
    return hashlib.sha256(f"{before}{body}".encode()).hexdigest()


def _seal(key: Key, head: str) -> str:
    return hashlib.blake2b(head.encode(), digest_size=16, key=key.subkey("audit seal")).hexdigest()


def logs(vault: Path) -> list[Path]:
    """Return the audit files of a vault, in the order of their runs."""
    numbered = {
        int(match[1]): path for path in vault.iterdir() if (match := NAME.fullmatch(path.name))
    }
    return [numbered[number] for number in sorted(numbered)]


def next_log(vault: Path) -> tuple[Path, str]:
    """Return the log file of the next run, and the chain value that it continues."""
    if not (paths := logs(vault)):
        return vault / "audit-0001.jsonl", ""
    clear_leftovers(last := paths[-1])
    with last.open("rb") as file:
        file.seek(max(0, last.stat().st_size - (1 << 16)))
        match = re.search(rb'"chain":"([0-9a-f]{64})"\}\n$', file.read())
    if match is None:
        hint = "run clinveil verify to find the line"
        raise InputError("the audit log is broken at its end", where=last.name, hint=hint)
    number = int(NAME.fullmatch(last.name)[1]) + 1  # type: ignore[index]
    return vault / f"audit-{number:04d}.jsonl", match[1].decode()


class AuditCheck(NamedTuple):
    """Result of one check of the log."""

    name: str
    passed: bool
    detail: str = ""


def audit_checks(vault: Path) -> list[AuditCheck]:
    """Verify the chain through all runs of a vault, and the seals if the vault contains its key.

    Raises InputError if there is no audit log.
    """
    paths = logs(vault) if vault.is_dir() else []
    if not paths:
        raise InputError(
            "contains no audit log", where=vault.name, hint="pass the vault of clinveil deidentify"
        )
    numbers = [int(NAME.fullmatch(path.name)[1]) for path in paths]  # type: ignore[index]
    missing = sorted({*range(1, numbers[-1] + 1)} - {*numbers})
    detail = f"run {missing[0]} is missing" if missing else f"{len(paths)} in all"
    checks = [AuditCheck("every run has its audit file", not missing, detail)]
    head = _START
    key = Key.load(vault / "key.bin") if (vault / "key.bin").exists() else None
    for path in paths:
        check, head = _verified(path, head, key)
        checks.append(check)
        if not check.passed:
            break
    return checks


def _verified(path: Path, head: str, key: Key | None) -> tuple[AuditCheck, str]:
    name = f"the chain of {path.name}"
    number = 0
    last = ""
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, 1):
                match = _LINE.fullmatch(line)
                if match is None or _link(head, match["body"]) != match["chain"]:
                    return AuditCheck(name, False, f"broken at line {number}"), head
                last = line
                before = head
                head = match["chain"]
    except UnicodeDecodeError:
        return AuditCheck(name, False, f"broken after line {number}"), head
    try:
        fields = json.loads(last) if last else {}
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        return AuditCheck(name, False, f"line {number} is not an entry"), head
    if fields.get("event") != "end":
        return AuditCheck(name, False, f"the run has no end (line {number} is the last)"), head
    unsealed = "" if key else ", seal not checked: the vault has no key"
    if key and fields.get("seal") != _seal(key, before):
        return AuditCheck(
            name, False, f"line {number}: the seal does not belong to this vault's key"
        ), head
    return AuditCheck(name, True, f"{number:,} lines{unsealed}, seal {fields.get('seal')}"), head
