"""The report of a finished run, made again from the record in its vault."""

from __future__ import annotations

import json
from pathlib import Path

from clinveil.core.errors import InputError
from clinveil.core.files import refuse_existing
from clinveil.report.render import write_report
from clinveil.report.stored import from_json


def report_again(run: Path, out: Path | None, *, edition: str, force: bool) -> Path:
    """Write the report of one edition and return its path. Raises InputError where the vault holds no record."""
    try:
        stored = json.loads((run / "vault" / "record.json").read_text(encoding="utf-8"))[edition]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError("holds no record of a run", where=run.name, remedy="name the OUT of a release") from None
    target = out or run / "vault" / f"report{'-external' if edition == 'external' else ''}.html"
    refuse_existing(target, force=force or out is None)
    write_report(from_json(stored), target)
    return target
