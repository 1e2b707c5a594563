"""Files that a run of `clinveil deidentify` writes to its vault: audit log, crosswalk, spans."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, TextIO

from clinveil.core.atomic import atomic
from clinveil.core.keys import Key
from clinveil.phi.treatment.audit import NAME, Chain, next_log
from clinveil.phi.treatment.crosswalk import Writer
from clinveil.phi.treatment.deidentifier import Deidentified

SPANS, CROSSWALK = "spans.jsonl", re.compile(r"crosswalk-[0-9a-f]{16}\.bin")
_PARTIAL = re.compile(r"\.(?:spans|audit-\d+|crosswalk-[0-9a-f]+)\.(?:jsonl|bin)\.[0-9a-f]{8}\.part")


def is_leftover(name: str) -> bool:
    """Whether a file of a vault can be the leftover of a killed run."""
    return bool(name == SPANS or NAME.fullmatch(name) or CROSSWALK.fullmatch(name) or _PARTIAL.match(name))


@dataclass
class Records:
    """Open files of a run; files that were not requested are None.

    Attributes:
        vault: their folder. run: name of the run, 16 random hex digits. audit: its log.
    """

    vault: Path
    run: str
    audit: Chain
    crosswalk: Writer | None = None
    spans: TextIO | None = None

    def add(self, result: Deidentified) -> None:
        """Add the records of a batch."""
        for body in result.audit:
            self.audit.add(body)
        if self.crosswalk is not None and result.crosswalk:
            self.crosswalk.write(result.crosswalk)
        for found in result.spans or () if self.spans else ():
            span = found.span
            line = {"note_id": found.note_id, "start": span.start, "end": span.end, "label": span.label}
            line |= {"text": found.text, "detector": span.detector, "score": span.score, "why": span.why}
            self.spans.write(json.dumps(line, ensure_ascii=False) + "\n")  # type: ignore[union-attr]

    def end(self, key: Key, fields: Mapping[str, Any]) -> None:
        """Close the log and the crosswalk."""
        self.audit.end(key, {"run": self.run, **fields})
        if self.crosswalk is not None:
            self.crosswalk.close()


@contextmanager
def records(vault: Path, key: Key, *, crosswalk: bool, spans: bool) -> Iterator[Records]:
    """Open the files of a run; each appears complete at the end, or not at all."""
    run = token_hex(8)
    path, before = next_log(vault)
    with ExitStack() as stack:

        def part(name: str, *, force: bool = False) -> Path:
            return stack.enter_context(atomic(vault / name, force=force))

        def text(path: Path) -> TextIO:
            return stack.enter_context(path.open("w", encoding="utf-8"))

        chain = Chain(text(part(path.name)), before)
        rows = Writer(stack.enter_context(part(f"crosswalk-{run}.bin").open("wb")), key, run) if crosswalk else None
        yield Records(vault, run, chain, rows, text(part(SPANS, force=True)) if spans else None)
