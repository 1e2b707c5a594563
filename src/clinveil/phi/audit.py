"""The audit log of a vault: what was done to which place of which note, without a word of any note.

A file a run, `audit-0001.jsonl`, in the order of the runs. Each line ends with the SHA-256 of itself and of the line
before, across files, so that a line that was changed, taken out or put in breaks the chain from there on. The last line
of a run is sealed with the run's key: without the key nobody can write the chain anew. What is cut off at the end of
the log leaves no gap: keep the last seal, which `deidentify.json` and `clinveil verify` say, somewhere else too.

A note stands there under a keyed reference, never its id; a span with its offsets, label, detector, reason, score, what
was done and how long the replacement is. A reason that holds the text of its span is left out: a foreign detector may
have put it there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from clinveil.core.errors import InputError
from clinveil.core.keys import Key
from clinveil.core.spans import Span
from clinveil.phi.treating import Treated

NAME = re.compile(r"audit-(\d{4,})\.jsonl")
_START = "0" * 64
_LINE = re.compile(r'(?P<body>\{.*),"chain":"(?P<chain>[0-9a-f]{64})"\}\n', re.S)


def reference(key: Key, note_id: str) -> str:
    """What stands for a note in the log: only who has the key can tell which note it is."""
    stream = key.stream("audit note", note_id)
    return f"{stream.uint64():016x}{stream.uint64():016x}"


def note_line(key: Key, note_id: str, text: str, spans: Sequence[Span], treated: Sequence[Treated]) -> str:
    """The line of one note as `Chain.add` takes it; `spans` in code points of the source."""
    done = [
        [s.start, s.end, s.label, s.detector, _reason(s, text), round(s.score, 4), made.action.value, len(made.text)]
        for s, made in zip(spans, treated, strict=True)
    ]
    return _body({"note": reference(key, note_id), "spans": done})


def _reason(span: Span, text: str) -> str:
    original, why = text[span.start : span.end].casefold(), span.why.casefold()
    return "" if original in why or any(len(w) > 3 and w in why for w in original.split()) else span.why


class Chain:
    """Writes the lines of one run.

    Args:
        file: where they go. before: the chain of the runs before, "" for none.
    """

    def __init__(self, file: TextIO, before: str = "") -> None:
        self._file, self.head = file, before or _START

    def begin(self, event: str, said: Mapping[str, Any]) -> None:
        """The first line of a run: when it was, and what it was told."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.write({"event": event, "time": now, "schema": "clinveil.audit/1", **said})

    def end(self, key: Key, said: Mapping[str, Any]) -> None:
        """The last line, sealed with the key."""
        self.write({"event": "end", **said, "seal": _seal(key, self.head)})

    def write(self, line: Mapping[str, Any]) -> None:
        """One line."""
        self.add(_body(line))

    def add(self, body: str) -> None:
        """One line that is JSON already, but for the bracket behind it."""
        self.head = _link(self.head, body)
        self._file.write(f'{body},"chain":"{self.head}"}}\n')


def _body(line: Mapping[str, Any]) -> str:
    return json.dumps(line, separators=(",", ":"))[:-1]


def _link(before: str, body: str) -> str:
    return hashlib.sha256(f"{before}{body}".encode()).hexdigest()


def _seal(key: Key, head: str) -> str:
    return hashlib.blake2b(head.encode(), digest_size=16, key=key.subkey("audit seal")).hexdigest()


def logs(vault: Path) -> list[Path]:
    """The audit files of a vault, in the order of their runs."""
    found = {int(match[1]): path for path in vault.iterdir() if (match := NAME.fullmatch(path.name))}
    return [found[number] for number in sorted(found)]


def next_log(vault: Path) -> tuple[Path, str]:
    """Where the next run writes, and the chain that it goes on with."""
    there = logs(vault)
    number = int(NAME.fullmatch(there[-1].name)[1]) + 1 if there else 1  # type: ignore[index]
    return vault / f"audit-{number:04d}.jsonl", _head(there[-1]) if there else ""


def _head(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - (1 << 16)))
        match = re.search(rb'"chain":"([0-9a-f]{64})"\}\n$', file.read())
    if match is None:
        raise InputError("the audit log is broken at its end", where=path.name, hint="clinveil verify says where")
    return match[1].decode()


class AuditCheck(NamedTuple):
    """One thing that was looked at: what, whether it holds, and what else is to be said."""

    what: str
    passed: bool
    message: str = ""


def audit_checks(vault: Path) -> list[AuditCheck]:
    """Follow the chain through all runs of a vault; seals are checked where the vault holds its key.

    Raises InputError where there is no audit log.
    """
    there = logs(vault) if vault.is_dir() else []
    if not there:
        raise InputError("holds no audit log", where=vault.name, hint="name the vault of clinveil deidentify")
    numbers = [int(NAME.fullmatch(path.name)[1]) for path in there]  # type: ignore[index]
    missing = sorted({*range(1, numbers[-1] + 1)} - {*numbers})
    said = f"run {missing[0]} is missing" if missing else f"{len(there)} in all"
    checks, head = [AuditCheck("every run has its audit file", not missing, said)], _START
    key = Key.load(vault / "key.bin") if (vault / "key.bin").exists() else None
    for path in there:
        check, head = _followed(path, head, key)
        checks.append(check)
        if not check.passed:
            break
    return checks


def _followed(path: Path, head: str, key: Key | None) -> tuple[AuditCheck, str]:
    what, number, last = f"the chain of {path.name}", 0, ""
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, 1):
                match = _LINE.fullmatch(line)
                if match is None or _link(head, match["body"]) != match["chain"]:
                    return AuditCheck(what, False, f"broken at line {number}"), head
                last, before, head = line, head, match["chain"]
    except UnicodeDecodeError:
        return AuditCheck(what, False, f"broken after line {number}"), head
    said = json.loads(last) if last else {}
    if said.get("event") != "end":
        return AuditCheck(what, False, f"the run has no end (line {number} is the last)"), head
    seed = "" if key else ", seal not checked: the vault has no key"
    if key and said.get("seal") != _seal(key, before):
        return AuditCheck(what, False, f"line {number}: the seal is not of this vault's key"), head
    return AuditCheck(what, True, f"{number:,} lines{seed}, seal {said.get('seal')}"), head
