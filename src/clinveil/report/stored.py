"""A record as JSON and back (`clinveil.report/1`): what `clinveil report OUT` makes its pages from."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.report.record import ReleaseRecord

SCHEMA = "clinveil.report/1"


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(ReleaseRecord)


def to_json(record: ReleaseRecord) -> str:
    """The record as JSON. Secret where the record is: the internal edition holds source text."""
    data = _adapter().dump_python(record, mode="json", exclude={"findings"})
    data["findings"] = [finding.as_dict() for finding in record.findings]
    return json.dumps({"schema": SCHEMA, **data}, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(text: str) -> ReleaseRecord:
    """The record of `to_json`. Raises InputError, without a word of the content, if it is not one."""
    try:
        data = json.loads(text)
        known = data.pop("schema") == SCHEMA
        data["findings"] = [Finding.from_dict(finding) for finding in data["findings"]]
        record: ReleaseRecord = _adapter().validate_python(data)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError("not a stored report record", remedy="make the release again") from None
    if not known:
        raise InputError(f"the report record is not {SCHEMA}", remedy="make the release again")
    return record
