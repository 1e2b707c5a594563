"""`benchmarks/intervals.md` has every line that its program prints, and the program runs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def coverage():
    path = ROOT / "benchmarks" / "interval_coverage.py"
    spec = importlib.util.spec_from_file_location("interval_coverage", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["interval_coverage"] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["interval_coverage"]


def test_the_page_has_every_line_of_the_benchmark(coverage):
    page = (ROOT / "benchmarks" / "intervals.md").read_text(encoding="utf-8")
    cases = list(coverage.cases())
    assert len(cases) > 60
    for case in cases:
        assert f"| {case.interval} | {case.setting} | {case.repetitions:,} |" in page


def test_one_interval_by_name(coverage, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["interval_coverage.py", "name precision", "--scale", "0.05"])
    coverage.main()
    lines = capsys.readouterr().out.splitlines()
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in lines[2:]
        if line.startswith("|")
    ]
    assert len(rows) == 10 and {row[0] for row in rows} == {"name precision at few hits"}
    assert all(float(row[3]) >= 0.88 for row in rows)
