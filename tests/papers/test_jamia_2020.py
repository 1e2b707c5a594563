"""The study of paper A: end to end on invented notes, taken up again after a kill, its grid, tables
and page.
"""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pytest
from clinveil.study.jamia_2020.study import (
    Jamia2020,
    StudySettings,
    means,
    points,
    run_study,
    seeds,
)
from clinveil.study.jamia_2020.tasks import Classify, Prepare, Setting, Treat, cut

from clinveil.cli.main import main
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.load_settings import load_settings
from clinveil.core.settings import NotesSettings
from clinveil.core.tokens import words
from clinveil.corpus.demo import write_demo
from clinveil.report.numerals import between, decimals
from clinveil.scale.tasks import Store
from clinveil.stats.findings import unmeasured
from clinveil.study.engine import stages
from clinveil.study.inputs import File, Source
from clinveil.study.tables import Table, shown

TINY = {"size": "tiny", "label": ("diagnosis_group",), "workers": 1, "seed": 3}


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    return write_demo(tmp_path_factory.mktemp("demo") / "demo", 120, 1).files[0]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    rows = [
        "pain,fever,3",
        "pain,ache,8",
        "left,right,6",
        "patient,woman,5",
        "heart,chest,7",
        "mg,daily,4",
        "follow,up,9",
    ]
    path = tmp_path_factory.mktemp("pairs") / "words.csv"
    path.write_text("\n".join(["term1,term2,score", *rows]))
    return path


@pytest.fixture(scope="module")
def done(notes, pairs, tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "out"
    said = []
    settings = load_settings(StudySettings, TINY)
    return run_study(notes, out, settings, pairs=(pairs,), say=said.append), out, said


def test_every_output_is_there_and_its_owners_only(done):
    _, out, _ = done
    for name in ("tables.md", "findings.json", "SECRET.txt"):
        assert stat.S_IMODE((out / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(out.stat().st_mode) == 0o700


def test_tables_have_the_papers_numbers_beside_ours(done):
    results, out, _ = done
    made = {table.ident: table for table in results.tables}
    assert list(made) == ["table-1", "table-2", "table-3", "table-4", "tokens"]
    assert made["table-2"].rows[0][:2] == ("patients", "542,651")
    assert ("Pedersen, paper", "all", "0.61", "0.54 (0.51 to 0.56)") in made["table-3"].rows
    text = (out / "tables.md").read_text()
    assert "N = 3, cbow; lr" in text


def test_the_original_loses_exactly_nothing(done):
    results, *_ = done
    own = [
        f
        for f in results.all("utility.classification_loss")
        if f.detail["treated_kind"] == "original"
    ]
    assert own
    assert all((f.value, f.low, f.high) == (0, 0, 0) for f in own)


def test_controls_and_chance_stand_beside(done):
    results, *_ = done
    first = results.of("utility.classification")
    assert first.chance is not None
    assert first.control is not None
    assert first.value > first.control


def test_the_example_note_changes_as_its_setting_says(done):
    results, *_ = done
    examples = results.facts["examples"]
    assert "Whitfield" in examples["original"]
    assert "Whitfield" not in examples["PHI removed"]
    assert "diabetes" in examples["PHI replaced"]
    before = words(examples["original"])
    after = examples["N = 3, cbow"].split()
    assert len(before) == len(after)
    known = sum(one == other for one, other in zip(before, after, strict=True))
    assert known == 0


def correlated(value, chance_high=0.2, repetition=0, n="3"):
    """A finding of one repetition; at chance it has no value, as `similarity` returns it."""
    detail = {"algorithm": "cbow", "list": "x", "series": "", "n": n, "pairs": 50, "scored": 40}
    detail |= {"repetition": repetition, "chance_high": chance_high}
    if value > chance_high:
        return Finding("utility.similarity", value, 40, "higher", detail=detail)
    return unmeasured(
        "utility.similarity", "no evidence: at chance", 40, detail={**detail, "correlation": value}
    )


def test_repetitions_are_means_with_intervals():
    (mean,) = means([correlated(0.4), correlated(0.5, repetition=1)])
    assert mean.n == mean.detail["repetitions"] == 2
    assert mean.low < mean.value < mean.high and mean.value == pytest.approx(0.45)
    (mixed,) = means(
        [correlated(0.1), correlated(0.5, repetition=1)]
    )  # also of repetitions at chance
    assert mixed.value == pytest.approx(0.3)


def test_a_mean_at_chance_is_no_evidence_however_narrow_its_interval():
    (mean,) = means(
        [correlated(0.097), correlated(0.098, repetition=1), correlated(0.099, repetition=2)]
    )
    assert mean.value is None and (mean.low, mean.high) == (None, None)
    assert shown(mean) == "no evidence (0.098)"


def test_few_pairs_are_no_evidence_in_the_table(done):
    results, *_ = done
    mean = results.of("study.similarity", n="3")
    assert mean.value is None and "20 are required" in mean.detail["why"]
    table = next(table for table in results.tables if table.ident == "table-3")
    own = [row[2:] for row in table.rows if row[0].startswith("words")]
    assert own and all({"no evidence"} <= {*cells} <= {"no evidence", "–"} for cells in own)


def test_findings_hold_no_word_of_a_note(done, notes):
    import pyarrow.parquet as pq

    _, out, _ = done
    data = json.loads((out / "findings.json").read_text())
    assert data["command"] == "study jamia-2020"
    said = set(words(json.dumps(data)))
    names = {
        form
        for text in pq.read_table(notes)["text"].to_pylist()[:50]
        for form in words(text)
        if len(form) > 9
    }
    assert len(names & said) < 0.05 * len(names)


def test_a_second_run_does_nothing(done, notes, pairs):
    results, out, _ = done
    before = {path: path.stat().st_mtime_ns for path in (out / "tasks").rglob("done")}
    said = []
    again = run_study(
        notes, out, load_settings(StudySettings, TINY), pairs=(pairs,), say=said.append
    )
    assert {path: path.stat().st_mtime_ns for path in (out / "tasks").rglob("done")} == before
    assert again.findings == results.findings
    assert not said


def test_a_task_that_was_cut_off_is_done_again(done, notes, pairs):
    results, out, _ = done
    cut_off = next((out / "tasks").rglob("test.npy")).parent
    (cut_off / "done").unlink()
    again = run_study(notes, out, load_settings(StudySettings, TINY), pairs=(pairs,))
    assert (cut_off / "done").exists()
    assert again.findings == results.findings


def planned(notes, lists=None, **told):
    settings = load_settings(StudySettings, {"label": ("diagnosis_group",), **told})
    return Jamia2020(settings, Source("digest", notes, NotesSettings()), lists)


def tasks_of(study, kind):
    return [
        task for tasks in stages(study.wanted).values() for task in tasks if isinstance(task, kind)
    ]


def test_the_grid_is_the_papers(notes):
    study = planned(notes)
    assert list(stages(study.wanted)) == [
        "prepare",
        "neighbours",
        "treat",
        "train",
        "classify",
        "compare",
    ]
    treats = tasks_of(study, Treat)
    classifies = tasks_of(study, Classify)
    grid = {t.setting.label for t in treats if t.setting.kind == "neighbours"}
    assert grid == {
        f"N = {n}, {a}" for n in ("3", "5", "7", "9", "3-14") for a in ("cbow", "skipgram")
    }
    kinds = {t.setting.kind for t in treats}
    assert kinds == {"original", "neighbours", "phi-remove", "phi-replace"}
    assert len(set(classifies)) == len(classifies)
    assert {c.model for c in classifies} == {"lr", "svm", "cnn", "lstm"}
    transfers = {c.transfer for c in study.compares if c.transfer}
    assert len(transfers) == 4


def test_one_split_for_every_setting(notes):
    study = planned(notes)
    assert {c.prepare for c in tasks_of(study, Classify)} == {study.prepare}


def test_networks_on_the_original_take_vectors_of_the_same_algorithm(notes):
    for compare in planned(notes).compares:
        if compare.treated[0].train and not compare.transfer:
            assert compare.original[0].train.settings == compare.treated[0].train.settings


def test_word_pairs_are_repeated_for_every_n(notes, pairs):
    study = planned(notes, (File.of(pairs),), repetitions=4)
    counted = {}
    for similar in study.similars:
        n = similar.treat.setting.n or "0"
        counted[n] = counted.get(n, 0) + 1
    assert counted == dict.fromkeys(("0", "3", "5", "7", "9", "3-14"), 4)
    assert all(
        s.fast.settings.algorithm == "fasttext" and s.fast.seed == s.train.seed
        for s in study.similars
    )


@pytest.mark.parametrize(
    "told",
    [
        {"n": ("1",)},
        {"n": ("5-3",)},
        {"n": ("x",)},
        {"model": ("bert",)},
        {"algorithm": ("glove",)},
    ],
)
def test_settings_that_make_no_sense(told):
    with pytest.raises(UsageError):
        load_settings(StudySettings, told)


def test_nothing_to_measure_by(notes, tmp_path):
    with pytest.raises(UsageError, match="--label"):
        run_study(notes, tmp_path / "out", load_settings(StudySettings, {"size": "tiny"}))
    with pytest.raises(UsageError, match="exactly one --label"):
        run_study(
            notes,
            tmp_path / "out",
            load_settings(StudySettings, {"label": ("code", "diagnosis_group")}),
        )


def test_documents_are_cut_at_a_word():
    assert cut("One two, three four", 2) == "One two"
    assert cut("One two", 2) == "One two"
    assert cut("", 3) == ""
    assert words(cut("a1 b-c d. " * 50, 60)) == words("a1 b-c d. " * 50)[:60]


def test_prepared_without_a_label_is_a_sample(notes, tmp_path):
    source = Source.of(notes, NotesSettings())
    prepare = Prepare(source, None, 30, 10, 50, None, 1)
    said = prepare(tmp_path, Store(tmp_path))
    assert said["notes"] == 30
    assert said["tokens"] <= 300
    assert "classes" not in said


def test_settings_have_labels_of_their_own():
    assert Setting("neighbours", "3-14", "cbow").label == "N = 3-14, cbow"
    assert Setting("neighbours", "3", "cbow").label == "N = 3, cbow"


def test_points():
    assert points(0.05) == -5.0
    assert str(points(0.0)) == "0.0"
    assert points(None) is None


def test_numbers():
    assert decimals(None) == "–"
    assert between(0.5, 0.4, 0.6, 1) == "0.5 (0.4 to 0.6)"
    assert between(0.5, None, 0.6, 1) == "0.5"


def test_markdown():
    table = Table("t", "Table", "Why?", ("a", "b"), (("x|y", "1"),), ("said",))
    assert (
        table.markdown() == "## Table\n\nWhy?\n\n| a | b |\n| --- | --- |\n| x\\|y | 1 |\n\n- said"
    )


def test_command(notes, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = [
        "study",
        "jamia-2020",
        str(notes),
        "--label",
        "diagnosis_group",
        "--size",
        "tiny",
        "-o",
        str(out),
    ]
    more = [
        "--set",
        "baselines=false",
        "--workers",
        "1",
        "--set",
        "max_documents=150",
        "--json",
        str(tmp_path / "f.json"),
    ]
    assert main([*arguments, *more]) == 0
    captured = capsys.readouterr()
    assert "Table 4" in captured.out
    assert "Table 1" not in captured.out  # words of the notes stand in it
    assert "SECRET" in captured.err
    assert json.loads(Path(tmp_path / "f.json").read_text())["findings"]


def test_seeds_of_runs_differ():
    assert len(set(seeds(1, 5))) == 5
    assert seeds(1, 5)[:2] == seeds(1, 2)
    assert not np.array_equal(seeds(1, 2), seeds(2, 2))
