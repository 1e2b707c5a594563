"""`clinveil prepare spans`: from each form to each other, and what it refuses."""

from __future__ import annotations

import json

import pytest

from clinveil.cli.main import main
from clinveil.core.spans import Span
from clinveil.corpus.corpus import rows
from clinveil.corpus.gold import Scheme, read_spans
from clinveil.corpus.open import open_corpus

TEXT = "Dr. Éva 😀 Fox\r\nsaw Ada on 3/4."
SPANS = [Span(4, 7, "NAME"), Span(10, 13, "NAME"), Span(19, 22, "NAME"), Span(26, 29, "DATE")]


@pytest.fixture
def site(tmp_path):
    notes = [{"note_id": "a", "text": TEXT}, {"note_id": "b", "text": "no names"}, {"note_id": "c", "text": "unseen"}]
    (tmp_path / "notes.jsonl").write_text("".join(json.dumps(note) + "\n" for note in notes))
    lines = [{"note_id": "a", "start": s.start, "end": s.end, "label": s.label} for s in SPANS]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"note_id": "b"}]))
    return tmp_path


def _prepare(*arguments):
    return main(["study", "prepare", "spans", *map(str, arguments), "--set", "quiet=true"])


@pytest.mark.parametrize("first", ["brat", "i2b2", "jsonl"])
@pytest.mark.parametrize("unit", ["bytes", "utf16"])
def test_there_and_back(site, first, unit):
    one, back = site / "one", site / "back.jsonl"
    one = site / "one.jsonl" if first == "jsonl" else one
    assert (
        _prepare(site / "notes.jsonl", site / "gold.jsonl", "-o", one, "--to", first, "--set", f"write_offsets={unit}")
        == 0
    )
    notes = site / "notes.jsonl" if first == "jsonl" else one
    if first != "jsonl":
        assert [note.note_id for note in rows(open_corpus(one))] == ["a", "b"]  # c was not looked at
        assert next(rows(open_corpus(one))).text == TEXT
        assert read_spans(one, Scheme(unit)).of("a", TEXT) == SPANS
    assert _prepare(notes, one, "-o", back, "--set", f"offsets={unit}") == 0
    assert read_spans(back).of("a", TEXT) == SPANS
    assert set(read_spans(back).marks) == {"a", "b"}
    assert back.stat().st_mode & 0o077 == 0


def test_spans_that_do_not_fit_leave_nothing(site, capsys):
    (site / "gold.jsonl").write_text('{"note_id": "a", "start": 0, "end": 500, "label": "NAME"}\n')
    assert _prepare(site / "notes.jsonl", site / "gold.jsonl", "-o", site / "out", "--to", "brat") == 3
    assert not (site / "out").exists()
    assert "the span ends at 500" in capsys.readouterr().err
    assert _prepare(site / "notes.jsonl", site / "gold.jsonl", "-o", site / "notes.jsonl") == 2


def test_deidentify_takes_xml_and_gives_xml(site):
    gold = site / "gold.jsonl"
    assert _prepare(site / "notes.jsonl", gold, "-o", site / "xml", "--to", "i2b2") == 0
    arguments = [
        str(site / "xml"),
        "-o",
        str(site / "out"),
        "--set",
        "mode=tag",
        "--workers",
        "1",
        "--set",
        "quiet=true",
    ]
    assert main(["deidentify", *arguments]) == 0
    assert sorted(path.name for path in (site / "out").glob("*.xml")) == ["a.xml", "b.xml"]
    texts = {note.note_id: note.text for note in rows(open_corpus(site / "out"))}
    assert "[NAME]" in texts["a"]
    assert "Ada" not in texts["a"]
    assert "\r\n" in texts["a"]
    assert "<TAGS>\n</TAGS>" in (site / "out" / "a.xml").read_text()
