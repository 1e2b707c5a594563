"""Differences that `tests/same_bytes.py` reports and ignores."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import same_bytes

ONE = same_bytes.case("one", "inspect x")
FOUND = {"version": "1", "findings": [{"measure": "attack.names", "value": 0.25, "detail": {"seconds": 3}}]}


def changed(**more):
    return {**FOUND, "findings": [{**FOUND["findings"][0], **more}]}


def compared(tmp_path, old, new):
    for side, files in (("old", old), ("new", new)):
        (tmp_path / side / "one").mkdir(parents=True)
        for name, text in files.items():
            (tmp_path / side / "one" / name).write_text(text if isinstance(text, str) else json.dumps(text))
    return same_bytes.differences(ONE, tmp_path / "old", tmp_path / "new")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a.npy": "1"}, {"a.npy": "1"}),
        ({"f.json": FOUND}, {"f.json": {**FOUND, "version": "2"}}),
        ({"f.json": FOUND}, {"f.json": changed(detail={"seconds": 9})}),
        ({"r.html": "made 2026-01-01 10:00:00 in 3 s"}, {"r.html": "made 2026-01-02 11:00:00 in 41 s"}),
    ],
)
def test_time_and_version_are_not_differences(tmp_path, old, new):
    assert compared(tmp_path, old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ({"a.npy": "1"}, {"a.npy": "2"}, "a.npy: 1 and 1 bytes that differ"),
        ({"a.npy": "1"}, {}, "a.npy: missing"),
        ({}, {"a.npy": "1"}, "a.npy: new"),
        ({"f.json": FOUND}, {"f.json": changed(value=0.5)}, "f.json: .findings[0](attack.names).value: 0.25 | 0.5"),
        ({"f.json": FOUND}, {"f.json": changed(value=None)}, "f.json: .findings[0](attack.names).value: 0.25 | null"),
        ({"f.json": FOUND}, {"f.json": {**FOUND, "findings": []}}, "f.json: .findings: 1 and 0 entries"),
        ({"r.html": "5 notes"}, {"r.html": "6 notes"}, 'r.html: line 1: "5 notes" | "6 notes"'),
    ],
)
def test_all_else_is_a_difference(tmp_path, old, new, message):
    assert compared(tmp_path, old, new) == [message]


def test_cases_need_existing_cases():
    known = same_bytes.all_cases()
    assert all(need in known for one in known.values() for need in one.needs)
    order = [one.name for one in same_bytes.chosen([], studies=True)]
    assert len(order) == len(known)
    assert all(order.index(need) < order.index(name) for name, one in known.items() for need in one.needs)
