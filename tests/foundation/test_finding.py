"""Findings and their file."""

from __future__ import annotations

import json
import math
import stat

import numpy as np
import pytest

from clinveil.errors import InputError
from clinveil.finding import SCHEMA, Finding, document, read_findings, write_findings

GOOD = Finding("attack.x", 0.25, n=8, better="lower", low=0.1, high=0.4, chance=0.2, detail={"unit": "tokens"})


def test_round_trip(tmp_path):
    path = tmp_path / "f.json"
    null = Finding("attack.y", None, n=0, detail={"why": "no patient"})
    write_findings(path, "attack x", [GOOD, null], seed=7)
    assert read_findings(path) == [GOOD, null]
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
        {"value": 0.5, "detail": {"x": math.inf}},
        {"value": None},
        {"value": 0.5, "low": 0.9, "high": 0.1},
        {"value": 0.5, "measure": "nodot"},
        {"value": 0.5, "detail": {"x": ["a"]}},
    ],
)
def test_refused(bad):
    with pytest.raises(InputError):
        Finding(**{"measure": "a.b", "n": 1, **bad})


def test_numpy_scalars_become_plain():
    finding = Finding("a.b", np.float32(0.5), n=np.int64(3), detail={"k": np.int64(2), "b": np.bool_(True)})
    assert json.dumps(finding.as_dict()["detail"]) == '{"k": 2, "b": true}'
    assert isinstance(finding.value, float)


def test_a_file_that_is_no_findings_file(tmp_path):
    path = tmp_path / "f.json"
    for text in ("{", "[]", '{"schema": "other", "findings": []}', '{"schema": "clinveil.findings/1"}'):
        path.write_text(text)
        with pytest.raises(InputError):
            read_findings(path)
