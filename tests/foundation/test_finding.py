"""Findings and their file."""

from __future__ import annotations

import json
import math
import stat

import numpy as np
import pytest

from clinveil.core import (
    Cell,
    Finding,
    GapScores,
    InputError,
    KnownList,
    document,
    read_findings,
    write_findings,
)
from clinveil.core.finding import SCHEMA

GOOD = Finding("attack.x", 0.25, n=8, better="lower", low=0.1, high=0.4, chance=0.2, unit="tokens")

FIELDS = (
    "unit",
    "count",
    "p",
    "p_is",
    "chance",
    "chance_is",
    "control",
    "control_is",
    "question",
)


def test_round_trip(tmp_path):
    path = tmp_path / "f.json"
    null = Finding("attack.y", None, n=0, why="no patient")
    full = Finding(
        "attack.z",
        0.5,
        n=2,
        cell=Cell("recipient", "names"),
        gated=True,
        labels=("a", "b"),
        numbers={"k": 3, "share": 0.5, "missing": None},
        scores=GapScores("macro-F1", score=0.4, floor=0.3, ceiling=0.5),
        known_list=KnownList(in_feed=5, in_release=4),
        remarks=("one",),
    )
    write_findings(path, "attack x", [GOOD, null, full], seed=7)
    assert read_findings(path) == [GOOD, null, full]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    data = json.loads(path.read_text())
    assert data["schema"] == SCHEMA
    assert data["seed"] == 7
    assert data["command"] == "attack x"


def test_stdout(capsys):
    write_findings("-", "c", [GOOD], seed=None)
    assert json.loads(capsys.readouterr().out) == document("c", [GOOD], seed=None)


@pytest.mark.parametrize(
    "bad",
    [
        {"value": math.nan},
        {"value": math.inf},
        {"value": 0.5, "low": math.nan},
        {"value": 0.5, "numbers": {"x": math.inf}},
        {"value": None},
        {"value": 0.5, "low": 0.9, "high": 0.1},
        {"value": 0.5, "measure": "nodot"},
        {"value": 0.5, "numbers": {"x": ["a"]}},
        {"value": 0.5, "numbers": {"x": "a"}},
        {"value": 0.5, "labels": ("a", 1)},
        {"value": 0.5, "labels": "a"},
        {"value": 0.5, "gated": 1},
        {"value": 0.5, "cell": ("recipient", "names")},
        {"value": 0.5, "p": 1.5},
        {"value": 0.5, "p": -0.1},
        {"value": 0.5, "p": math.nan},
        {"value": 10**400},
        {"value": "0.5"},
        {"value": 0.5, "n": None},
        {"value": 0.5, "n": -1},
        {"value": 0.5, "n": 2.7},
        {"value": 0.5, "n": math.inf},
        {"value": 0.5, "count": 2},
        {"value": 0.5, "count": -1},
        {"value": 0.5, "unit": 5},
        {"value": 0.5, "source": None},
        {"value": 0.5, "better": "zzz"},
        {"value": 0.5, "control_kind": "zzz"},
        {"value": 0.5, "measure": 5},
        {"value": 0.5, "numbers": None},
        *({"value": 0.5, "numbers": {key: 1}} for key in FIELDS),
    ],
)
def test_refused(bad):
    with pytest.raises(ValueError):
        Finding(**{"measure": "a.b", "n": 1, **bad})


def test_numpy_scalars_of_fields_become_plain():
    finding = Finding(
        "a.b", 0.5, n=np.int64(3), p=np.float32(0.5), count=np.int64(2), chance=np.float64(0.1)
    )
    assert [type(x) for x in (finding.n, finding.p, finding.count, finding.chance)] == [
        int,
        float,
        int,
        float,
    ]
    assert json.loads(json.dumps(finding.as_dict()))["count"] == 2


def test_a_file_that_is_no_findings_file(tmp_path):
    path = tmp_path / "f.json"
    for text in (
        "{",
        "[]",
        '{"schema": "other", "findings": []}',
        '{"schema": "clinveil.findings/1", "findings": []}',
        '{"schema": "clinveil.findings/2"}',
    ):
        path.write_text(text)
        with pytest.raises(InputError):
            read_findings(path)


HOSTILE = [
    "[1]",
    '{"measure": "a.b", "value": 0.5, "n": 1, "detail": {}}',
    '{"measure": "a.b", "value": 0.5, "n": 1, "cell": {"holding": "recipient"}}',
    '{"measure": "a.b", "value": 0.5, "n": 1, "labels": [1]}',
    '"a"',
    "null",
    *(
        f'{{"measure": "a.b", "value": 0.5, "n": 1, "numbers": {numbers}}}'
        for numbers in ("null", '"x"', "[1]")
    ),
    *(
        f'{{"measure": "a.b", "value": 0.5, "n": {n}}}'
        for n in ("null", "Infinity", "-1", "2.7", '"1"')
    ),
    f'{{"measure": "a.b", "value": 1{"0" * 400}, "n": 1}}',
    '{"measure": "a.b", "value": 0.5, "n": 1, "count": 2}',
    '{"measure": "a.b", "value": 0.5, "n": 1, "unit": 5}',
    '{"measure": "a.b", "value": 0.5, "n": 1, "better": "zzz"}',
    "[" * 100_000,
]


@pytest.mark.parametrize("finding", HOSTILE, ids=lambda text: text[:60])
def test_a_hostile_file_is_no_findings_file(tmp_path, finding):
    path = tmp_path / "f.json"
    path.write_text(f'{{"schema": "{SCHEMA}", "findings": [{finding}]}}')
    with pytest.raises(InputError, match="not a findings file"):
        read_findings(path)
