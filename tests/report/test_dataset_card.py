from __future__ import annotations

import ast
import json
from dataclasses import replace

import pytest
from invented_release import of_kind, record

from clinveil.report import Column, Gate, Verdict, release_card
from clinveil.report.page_one import KINDS


def header(card: str) -> dict[str, str]:
    lines = card.split("---\n")[1].splitlines()
    return dict(line.split(": ", 1) for line in lines)


def test_the_header_is_plain_yaml(passed):
    fields = header(release_card(passed))
    assert json.loads(fields["pretty_name"]) == "Consultation notes 2026"
    assert fields["license"] == "other"


def test_the_card_has_the_headline_the_figures_and_the_limits_of_use(passed):
    card = release_card(passed)
    assert "May leave to recipients under an agreement: every limit is held. Not for" in card
    assert "| Notes | 4,966 |" in card and "| 0.331 | 0.927 | 0.943 | 89.7" in card
    assert "| Can names of patients be recovered? | 2.7" in card
    assert "- The recipient does not compare the release with original notes" in card
    assert "license_name: data-use-agreement" in card
    assert "license_name: chosen-by-the-custodian" in release_card(record(audience="public"))
    assert "Not for: care" in card and "TEST SEED" not in card
    assert len(card.split()) < 700


@pytest.mark.parametrize("kind", KINDS)
def test_the_four_lines_of_python_parse_and_name_the_columns(kind):
    card = release_card(of_kind(kind), "notes.csv.gz")
    code = card.split("```python")[1].split("```")[0]
    names = {node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)}
    assert {"notes.csv.gz", "transcription", "doc_type"} <= names
    assert "real note" in code


def test_the_example_runs_on_released_notes(tmp_path, passed, monkeypatch):
    pandas = pytest.importorskip("pandas")
    rows = {"transcription": ["heart and lung", "knee and hip"] * 4, "doc_type": ["a", "b"] * 4}
    pandas.DataFrame(rows).to_parquet(tmp_path / "notes.parquet")
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    exec(release_card(passed).split("```python")[1].split("```")[0], space)
    assert list(space["model"].predict(["lung"])) == ["a"]


def test_a_test_seed_is_said():
    assert "TEST SEED: not for release" in release_card(record(test_seed=True))


def _hostile(bad: str) -> Gate:
    made = Gate(bad, bad, "names", within=True, value=bad, limit=bad, meaning=bad, hint=bad)
    return replace(made, unit=bad, default="0.05")


def test_hostile_names_break_neither_header_nor_tables(passed):
    bad = 'a": b\n---\n# x | y <script>'
    held = replace(
        passed, title=bad, corpus=replace(passed.corpus, columns=(Column(bad, bad),)),
        verdicts=(Verdict("agreement", (_hostile(bad),)),), earlier=(bad,), reuses=bad,
    )  # fmt: skip
    card = release_card(held)
    assert json.loads(header(card)["pretty_name"]) == " ".join(bad.split())
    assert "<script>" not in card.split("---\n", 2)[2].replace("\\<script\\>", "")
    tables = [line for line in card.splitlines() if line.startswith("| Column")]
    assert [line.replace("\\|", "").count("|") for line in tables] == [3]


def test_every_table_row_has_as_many_cells_as_its_head(passed):
    widths: list[int] = []
    for line in release_card(passed).splitlines():
        cells = line.replace("\\|", "").count("|")
        if not line.startswith("|"):
            widths = []
            continue
        widths.append(cells)
        assert cells == widths[0], line
