"""Paper C on few invented patients: tables, page, floors, and a second run that trains nothing."""

from __future__ import annotations

import re
import stat
import sys
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest
from papers.running import Cache, exit_code_of, settings_of
from papers.tables import Results, read_paper

from clinveil import Finding, InputError, UsageError, read_findings
from clinveil.corpus import write_demo
from clinveil.stats import t_interval

pytest.importorskip("torch", reason="the extra [neural] is not installed")
from papers.clinicalnlp_2019.privacy import fall, plan_audits
from papers.clinicalnlp_2019.run import HERE, PairFiles, main, run
from papers.clinicalnlp_2019.settings import (
    SyntheticSettings,
    corpus_label,
)
from papers.clinicalnlp_2019.steps import Inputs, split
from papers.clinicalnlp_2019.tables import tables

from clinveil.attacks import load_data
from clinveil.core import private_folder
from clinveil.scale import Store

PATIENTS = 60
PAPER = read_paper(HERE / "paper.toml")
TINY = [
    *("words=8000", "valid=10", "test=40", "units=2", "reseeds=1", "workers=1"),
    *("min_pair_count=1", "dim=8", "lstm.epochs=1", "lstm.annealed_epochs=1", "lstm.width=16"),
    *("lstm.layers=1", "casing.epochs=1", "casing.hidden=8", "casing.beam=2"),
]
LABELS = ("real notes", "lstm, dropout 0.0", "lstm, dropout 0.5", "unigram")


def settings(*changes):
    given = Namespace(settings=HERE / "settings.toml", set=[*TINY, *changes])
    return settings_of(SyntheticSettings, given)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A demo corpus, and word pairs that occur in it."""
    out = tmp_path_factory.mktemp("paper-c")
    write_demo(out / "demo", PATIENTS, 3)
    pairs = [("pain", "chest"), ("patient", "history"), ("left", "right"), ("blood", "pressure")]
    rows = [f"{first},{second},{score}\n" for score, (first, second) in enumerate(pairs)]
    (out / "pairs.csv").write_text("".join(["term1,term2,score\n", *rows]), encoding="utf-8")
    return out


def repeat(demo, out, *changes):
    pairs = PairFiles.of_paths([demo / "pairs.csv"], None)
    return run(demo / "demo" / "notes.parquet", pairs, out, settings(*changes))


@pytest.fixture(scope="module")
def finished(demo):
    """One run: its folder and results."""
    return demo / "finished", repeat(demo, demo / "finished")


def findings_of(finished):
    return finished[1].results.findings


def test_results_are_private_and_a_second_run_trains_nothing(finished, demo, capsys):
    out, done = finished
    for path in [out, *out.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert read_findings(out / "findings.json") == list(done.results.findings.findings)
    again = repeat(demo, out)
    assert capsys.readouterr().err == ""
    assert again.results.findings.findings == done.results.findings.findings


def test_every_privacy_score_has_its_floors(finished):
    findings = findings_of(finished)
    scores = findings.all("attack.pdtp")
    # model and text by dropout, compat, unigram of all and of the same patients
    assert len(scores) == 2 * 2 + 2 + 2
    assert all(score.control is not None for score in scores)
    for label in LABELS[1:3]:
        for access in ("the model", "released notes"):
            words = (corpus_label(label), "exact", access)
            assert findings.first("attack.pdtp_reseed_floor", *words).value > 0
            effect = findings.first("attack.pdtp_effect", *words)
            assert effect.numbers["seeds"] == 2 and effect.n == 2
        compat = (corpus_label(label), "compat")
        assert findings.first("attack.pdtp_effect", *compat) is None  # one seed


def test_tables_are_complete_and_have_no_word_of_a_note(finished, demo):
    out, done = finished
    text = (out / "tables.md").read_text(encoding="utf-8")
    assert all(table.markdown() in text for table in done.tables)
    assert [table.title for table in done.tables] == [spec.title for spec in PAPER.tables.values()]
    assert [table.title for table in done.tables if not table.printed] == [
        "Figure 1: a sampled note"
    ]
    by_title = {table.title: table for table in done.tables}
    assert [row[0] for row in by_title["Table 2: privacy and utility here"].rows] == [
        *LABELS,
        "by chance",
    ]
    printed = " ".join(table.markdown() for table in done.tables if table.printed).lower()
    sources = " ".join((HERE / name).read_text() for name in ("paper.toml", "tables.py"))
    allowed = set(re.findall(r"[A-Za-z]{6,}", " ".join([sources, *LABELS]).lower()))
    words = {word.lower() for note in done.results.parts.train.texts for word in note.split()}
    assert not words & (set(re.findall(r"[a-z]{6,}", printed)) - allowed)
    assert "compat: the same (epochs: 1)" in text


def test_real_notes_are_the_positive_control(finished):
    findings = findings_of(finished)
    copied = findings.first("attack.copies", corpus_label("real notes"), "20 words or more")
    assert copied.value > 0.95 > copied.numbers["held_out"]
    words = (corpus_label("real notes"), "loss threshold", "released notes")
    assert findings.first("attack.membership", *words).value > 0.95
    assert findings.first("attack.copies", corpus_label("unigram"), "20 words or more").value == 0.0


def test_utility_is_measured_for_every_corpus(finished):
    findings = findings_of(finished)
    for label in LABELS:
        for measure in ("utility.similarity", "utility.casing", "utility.perplexity"):
            assert findings.first(measure, corpus_label(label)) is not None
    parts = finished[1].results.parts
    cased = findings.first("utility.casing", corpus_label("real notes"), "model")
    lines = sum(text.count("\n") + 1 for text in parts.test.texts)
    assert (cased.numbers["notes"], cased.numbers["lines"]) == (len(parts.test), lines)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ("valid=10000", InputError, "too few"),
        ("words=1000", InputError, "the train part has"),
        ("max_hours=0.000000001", UsageError, "more than"),
    ],
)
def test_runs_that_cannot_succeed_are_refused_before_training(
    demo, tmp_path, change, error, message
):
    with pytest.raises(error, match=message):
        repeat(demo, tmp_path / "out", change)
    assert not list((tmp_path / "out").rglob("logs.npy"))


def test_the_script_reports_a_mistake_in_one_line(demo, tmp_path, capsys, monkeypatch):
    command = ["run", str(demo / "demo" / "notes.parquet"), "-o", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", [*command, "--set", "dropout=[1.0]"])
    assert exit_code_of(main) == 2
    assert "below 1" in capsys.readouterr().err


def test_the_papers_recipe_writes_the_notes_where_it_is_the_main_one(demo, tmp_path):
    notes = demo / "demo" / "notes.parquet"
    for main_mode in ("exact", "compat"):
        chosen = settings(f"main={main_mode}")
        out = private_folder(tmp_path / main_mode)
        parts = Cache(out).run(split, Inputs.read(notes, chosen))
        store = Store(private_folder(out / "models"))
        audits = plan_audits(store, parts, chosen).lstms
        for (mode, _), audit in audits.items():
            assert audit.full.keep == (mode == main_mode)
            assert (audit.full.write > 0) == (mode == "exact" or main_mode == "compat")
            if mode == "compat":
                assert all(model.write == 0 for model in audit.left_out)
                data = load_data(audit.data)
                valid = data.vocabulary.decode(data.validation.note(0).tolist())
                assert valid == parts.valid.texts[0]


@pytest.mark.parametrize(("low", "remark"), [(0.50, "has no power"), (0.60, "has power")])
def test_inference_states_whether_real_notes_beat_the_majority(finished, low, remark):
    real = Finding(
        "utility.nli",
        0.62,
        899,
        "higher",
        low,
        0.7,
        0.563,
        series="vectors",
        labels=(corpus_label("real notes"),),
    )
    results = finished[1].results
    with_nli = replace(results, findings=Results((*results.findings.findings, real)))
    text = "\n".join(table.markdown() for table in tables(with_nli, PAPER))
    assert f"Inference {remark}" in text
    assert "0.563" in text.split("| by chance |")[1].split("\n")[0]


def test_the_fall_of_a_score_is_paired():
    differences = np.array([1.0, 1.2, 0.8, 1.1, 0.9, 1.0, 1.3, 0.7])
    lower = fall(differences, {"corpus": "x"}, 1)
    assert lower.value == pytest.approx(1.0) and lower.p == 1 / 2**8
    assert (lower.low, lower.high) == t_interval(differences)
    none = fall(np.array([1.0, -1.0, 0.5, -0.5]), {"corpus": "x"}, 1)
    assert none.low < 0 < none.high and none.p > 0.3
