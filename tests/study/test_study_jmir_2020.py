"""The whole study on few invented patients: resumed after a kill, the same under every map, read as
tables and page.
"""

from __future__ import annotations

import importlib.util
import json
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clinveil.core.errors import InputError, UsageError
from clinveil.core.finding import read_findings
from clinveil.corpus.corpus import memory_corpus
from clinveil.corpus.demo import write_demo
from clinveil.corpus.people import Patient, read_patients, write_codes, write_patients
from clinveil.corpus.write import write_corpus
from clinveil.study.jmir_2020.settings import StudySettings
from clinveil.study.jmir_2020.study import run_study

PATIENTS = 60
TINY = {
    "size": "tiny",
    "miss_rate": 0.5,
    "epochs": 1,
    "dim": (8,),
    "permutations": 99,
    "patient_draws": 99,
}


def settings(**more):
    return StudySettings(**{**TINY, "workers": 1, **more})


def files(folder):
    return [folder / name for name in ("notes.parquet", "patients.parquet", "codes.csv")]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A demo corpus."""
    out = tmp_path_factory.mktemp("study") / "demo"
    write_demo(out, PATIENTS, 3)
    return out


@pytest.fixture(scope="module")
def finished(demo):
    """A study done in this process: its folder, its results, and what it said."""
    said = []
    out = demo.parent / "finished"
    results = run_study(*files(demo), out, settings(), said.append)
    return out, results, said


def test_the_plan_is_said_before_the_work(finished):
    _, _, said = finished
    assert said[0] == "remove names: 1 of 1 tasks to do"
    assert said[1].startswith("train: 2 of 2 tasks") and said[2].startswith("attack: 5 of 5 tasks")
    assert said[3] == "remove names 1 of 1: names, mode remove"
    assert len(said) == 3 + 1 + 2 + 5


def test_every_number_has_interval_chance_and_control_or_says_why(finished):
    _, results, _ = finished
    assert {f.detail.get("model") for f in results.findings} == {
        "skip-gram, window 3, 8 d, count 1+",
        "CBOW, window 3, 8 d, count 1+",
    }
    for finding in results.findings:
        if finding.value is None:
            assert finding.detail["why"]
        else:
            assert finding.low <= finding.value <= finding.high
            assert finding.chance is not None or finding.measure in (
                "attack.association_coverage",
                "attack.chain",
            )


def test_p_values_are_adjusted_over_models_and_the_best_is_paid_for(finished):
    _, results, _ = finished
    differences = [f for f in results.findings if f.measure == "attack.association_difference"]
    assert len(differences) == 4  # two models, two metrics
    assert all(f.detail["models"] == 4 and f.detail["p_over_models"] >= f.p for f in differences)
    assert all(f.control is not None for f in differences)
    (best,) = [f for f in results.findings if f.measure == "attack.names_best"]
    assert best.detail["models"] == 4
    assert best.value == max(f.value for f in results.findings if f.measure == "attack.names")


def test_the_folder_is_secret_and_holds_what_was_promised(finished):
    out, results, _ = finished
    assert {path.name for path in out.iterdir()} == {
        *("SECRET.txt", "tasks", "tables.md", "findings.json"),
    }
    for path in [out, *out.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert read_findings(out / "findings.json") == list(results.findings)
    assert json.loads((out / "findings.json").read_text())["schema"] == "clinveil.findings/1"


def cells_of(results, ident):
    """The cells of a table by window and heading."""
    table = next(table for table in results.tables if table.ident == ident)
    return {
        (row[0], head): cell
        for row in table.rows
        for head, cell in zip(table.columns, row, strict=True)
    }


def test_tables_hold_the_papers_numbers_beside_ours(finished):
    out, results, _ = finished
    printed = ["table-1", "table-2", "table-3", "table-3b", "table-4"]
    assert [table.ident for table in results.tables] == [*printed, "chain", "models"]
    assert cells_of(results, "table-1")["3", "skip-gram, paper"] == "369 (61.5)"
    assert cells_of(results, "table-2")["3", "CBOW, paper"] == "28.53"
    assert cells_of(results, "table-3")["3", "CBOW, paper"] == "149 (23.4)"
    assert cells_of(results, "table-4")["3", "skip-gram, A@5, paper"] == "53.1"
    assert ("3", "CBOW, paper") not in cells_of(results, "table-3b")
    ours = cells_of(results, "table-1")["3", "CBOW"]
    found = results.of("attack.names", model="CBOW, window 3, 8 d, count 1+", metric="cosine")
    assert ours.startswith(f"**{found.detail['hits']} ({100 * found.value:.1f})**; 95 % ")
    text = (out / "tables.md").read_text()
    assert all(table.markdown() in text for table in results.tables)
    assert "369 (61.5)" in text and "adjusted for the selection" in text
    assert [table.ident for table in results.tables if not table.printed] == ["chain", "models"]


def test_the_tables_are_marked_secret_and_quote_no_name(finished, demo):
    out, _, _ = finished
    page = (out / "tables.md").read_text()
    assert (
        "Secret." in page and "369 (61.5)" in page and "## Settings" in page and "## Limits" in page
    )
    forms = {
        token.lower() for p in read_patients(demo / "patients.parquet").values() for token in p.name
    }
    shown = set(re.findall(r"[a-z]+", page.lower()))
    common = {
        "an",
        "do",
        "may",
        "will",
        "long",
        "large",
        "law",
        "page",
        "given",
        "price",
        "said",
        "see",
        "so",
    }
    assert not {form for form in forms & shown if len(form) > 4} - common


def test_a_second_run_does_nothing_again(finished, demo):
    out, _, _ = finished
    times = {path: path.stat().st_mtime_ns for path in out.glob("tasks/*/done")}
    said = []
    again = run_study(*files(demo), out, settings(), said.append)
    assert not said
    assert {path: path.stat().st_mtime_ns for path in out.glob("tasks/*/done")} == times
    assert list(again.findings) == read_findings(out / "findings.json")


def test_only_what_a_changed_setting_touches_is_done_anew(finished, demo):
    out, _, _ = finished
    said = []
    run_study(*files(demo), out, settings(metric=("cosine", "cityblock", "euclidean")), said.append)
    assert said[0] == "attack: 3 of 7 tasks to do"


@pytest.mark.parametrize("on", ["local", "ray"])
@pytest.mark.slow
def test_processes_and_ray_find_the_same(finished, demo, on, tmp_path):
    if on == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("the extra [ray] is not installed")
    _, results, _ = finished
    other = run_study(
        *files(demo), tmp_path / "out", settings(workers=2 if on == "local" else 1, on=on)
    )
    assert other.findings == results.findings


def test_after_a_kill_the_same_command_finds_the_same(finished, demo, tmp_path):
    _, results, _ = finished
    out = tmp_path / "out"
    config = tmp_path / "study.toml"
    config.write_text("\n".join(f"{name} = {_toml(value)}" for name, value in TINY.items()))
    notes, patients, codes = map(str, files(demo))
    command = [
        sys.executable,
        "-m",
        "clinveil",
        "study",
        "jmir-2020",
        notes,
        "--patients",
        patients,
        "--codes",
        codes,
    ]
    command += ["-o", str(out), "--config", str(config), "--workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        while not any((folder.parent / "done").exists() for folder in out.glob("tasks/*/vectors")):
            assert first.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        first.kill()
    assert not (out / "findings.json").exists()
    said = []
    resumed = run_study(*files(demo), out, settings(), said.append)
    assert said[0] == "train: 1 of 2 tasks to do"
    assert resumed.findings == results.findings


def _toml(value):
    return json.dumps(list(value) if isinstance(value, tuple) else value)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Notes in which each name stands by its own diagnosis and nothing else: truth is nearest."""
    folder = tmp_path_factory.mktemp("planted")
    letters = "bcdfghjklmnprstvwz"
    word = [f"{a}{v}{b}{w}" for a in letters for v in "ao" for b in letters for w in "iu"]
    first = word[:60]
    last = word[60:120]
    illness = [f"{w}itis" for w in word[120:132]]
    people = [Patient(f"p{n}", (first[n], last[n]), (f"c{n % 12}",)) for n in range(60)]
    said = [" ".join([p.name[0], p.name[1], illness[n % 12]] * 25) for n, p in enumerate(people)]
    notes = memory_corpus(
        [(f"n{n}-{m}", p.patient_id, said[n]) for n, p in enumerate(people) for m in range(3)]
    )
    write_corpus(notes.batches(), folder / "notes.parquet", notes.columns, ".parquet")
    write_patients(people, folder / "patients.parquet")
    write_codes({f"c{n}": illness[n] for n in range(12)}, folder / "codes.csv")
    return folder


def planted_run(folder, out, **more):
    chosen = {
        "algorithm": ("skipgram",),
        "miss_rate": 1.0,
        "epochs": 10,
        "dim": (16,),
        "draws": 199,
        "window": (2,),
    }
    targets = tuple(f"c{n}" for n in range(12))
    return run_study(*files(folder), out, settings(**chosen, target=targets, mode="none", **more))


def test_a_planted_truth_is_found_by_every_attack(planted):
    results = planted_run(planted, planted / "true")
    one = {"model": "skip-gram, window 2, 16 d, count 1+", "metric": "cosine"}
    names = results.of("attack.names", **one)
    assert names.value > 0.9 and names.chance < 0.02 and names.control < 0.2
    assert names.detail["p_over_models"] <= 0.02
    apart = results.of("attack.association_difference", **one)
    assert apart.value < -0.1 and apart.p <= 0.01
    assert abs(apart.control) < abs(apart.value) / 4
    near = results.of("attack.scenario", **one, series="nearest", label="A@1")
    assert near.value > 0.9 and near.chance < 0.3
    assert near.control < 0.4


def test_names_dealt_out_anew_in_every_note_leave_attack_1_nothing(planted):
    results = planted_run(planted, planted / "redrawn", redrawn=True, metric=("cosine",))
    names = results.of("attack.names", model="skip-gram, window 2, 16 d, count 1+", metric="cosine")
    assert names.value < 0.1 and names.p > 0.01


@pytest.mark.slow
def test_surrogates_stand_among_the_names_in_mode_replace(demo, tmp_path):
    results = run_study(
        *files(demo), tmp_path / "out", settings(mode="replace", metric=("cosine",))
    )
    leaked = [f for f in results.findings if f.measure == "attack.names_leaked"]
    assert len(leaked) == 2
    assert all(f.detail["surrogate_names"] == PATIENTS / 2 for f in leaked)


def test_a_model_that_cannot_be_trained_does_not_end_the_study(demo, tmp_path):
    chosen = {"algorithm": ("cbow",), "metric": ("cosine",), "min_count": (1, 10_000_000)}
    results = run_study(*files(demo), tmp_path / "out", settings(**chosen))
    assert (
        "training requires two" in results.facts["missing"]["CBOW, window 3, 8 d, count 10000000+"]
    )
    assert results.findings
    assert any("count 10000000+" in remark for remark in results.tables[0].remarks)


def test_no_model_at_all_is_refused_with_its_reason(demo, tmp_path):
    with pytest.raises(UsageError, match="no model could be attacked"):
        run_study(*files(demo), tmp_path / "out", settings(min_count=(10_000_000,)))


def test_files_that_do_not_fit_are_refused_before_any_work(demo, tmp_path):
    notes, patients, codes = files(demo)
    bad = tmp_path / "codes.csv"
    bad.write_text("code\n1\n")
    with pytest.raises(InputError, match=r"codes\.csv"):
        run_study(notes, patients, bad, tmp_path / "out", settings())
    with pytest.raises(InputError):
        run_study(tmp_path / "none.parquet", patients, codes, tmp_path / "out", settings())
    assert not list((tmp_path / "out").glob("tasks/*"))


def test_the_paths_of_the_page_of_a_study_say_nothing_of_where_it_lies(finished, demo):
    out, _, _ = finished
    for name in ("tables.md", "findings.json"):
        assert str(Path(demo)) not in (out / name).read_text()
