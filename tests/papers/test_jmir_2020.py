"""Paper B on few invented patients: tables, page, resuming, and a planted truth."""

from __future__ import annotations

import re
import stat
import sys
from argparse import Namespace

import pytest
from papers.jmir_2020.run import HERE, main, run
from papers.jmir_2020.settings import FIGURE_3, GridSettings, main_models
from papers.jmir_2020.settings import models as grid_of
from papers.running import exit_code_of, settings_of

from clinveil import InputError, UsageError, read_findings
from clinveil.corpus import (
    Patient,
    memory_corpus,
    read_patients,
    write_codes,
    write_corpus,
    write_demo,
    write_patients,
)

pytest.importorskip("gensim", reason="the extra [gensim] is not installed")
PATIENTS = 60
TINY = [
    *('algorithm=["skipgram", "cbow"]', "window=3", "dim=8", "epochs=1", "miss_rate=0.5"),
    *("draws=99", "permutations=99", "patient_draws=99", "scenario_draws=20", "figure_3=false"),
    "workers=1",
]
ONE = ("skip-gram, window 2, 16 d, count 1+", "cosine")


def settings(*changes):
    return settings_of(GridSettings, Namespace(settings=HERE / "settings.toml", set=[*changes]))


def files(folder):
    return [folder / name for name in ("notes.parquet", "patients.parquet", "codes.csv")]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("paper-b") / "demo"
    write_demo(out, PATIENTS, 3)
    return out


@pytest.fixture(scope="module")
def finished(demo):
    """One run: its folder and results."""
    out = demo.parent / "finished"
    return out, run(*files(demo), out, settings(*TINY))


def test_every_number_has_interval_chance_and_control_or_a_reason(finished):
    _, done = finished
    findings = done.results.findings.findings
    assert {f.labels[0] for f in findings} == {
        "skip-gram, window 3, 8 d, count 1+",
        "CBOW, window 3, 8 d, count 1+",
    }
    for finding in findings:
        if finding.value is None:
            assert finding.why
        else:
            assert finding.low <= finding.value <= finding.high
            assert finding.chance is not None or finding.measure in (
                "attack.association_coverage",
                "attack.chain",
            )


def test_p_values_are_adjusted_over_models(finished):
    findings = finished[1].results.findings
    differences = findings.all("attack.association_difference")
    assert len(differences) == 4  # two models, two metrics
    assert all(f.numbers["models"] == 4 and f.numbers["p_over_models"] >= f.p for f in differences)
    assert all(f.control is not None for f in differences)
    (best,) = findings.all("attack.names_best")
    assert best.numbers["models"] == 4
    assert best.value == max(f.value for f in findings.all("attack.names"))


def test_tables_have_the_papers_numbers_next_to_ours(finished):
    out, done = finished
    titles = [table.title.partition(":")[0] for table in done.tables]
    tables = dict(zip(titles, done.tables, strict=True))
    assert titles == [
        *("Table 1", "Table 2", "Table 3", "Table 3b", "Table 4"),
        *("The chain", "All models and metrics"),
    ]

    def row(title):
        (cells,) = tables[title].rows
        return dict(zip(tables[title].columns, cells, strict=True))

    assert row("Table 1")["skip-gram, paper"] == "369 (61.5)"
    assert row("Table 2")["CBOW, paper"] == "28.53"
    assert row("Table 3")["CBOW, paper"] == "149 (23.4)"
    assert row("Table 4")["skip-gram, A@5, paper"] == "53.1"
    assert "CBOW, paper" not in row("Table 3b")
    cbow = ("CBOW, window 3, 8 d, count 1+", "cosine")
    found = done.results.findings.first("attack.names", *cbow)
    ours = row("Table 1")["CBOW"]
    assert ours.startswith(f"**{found.count} ({100 * found.value:.1f})**; 95 % ")
    text = (out / "tables.md").read_text()
    assert all(table.markdown() in text for table in done.tables)
    assert [table.title for table in done.tables if not table.printed] == [
        "The chain: patient by patient",
        "All models and metrics",
    ]


def test_the_folder_is_private_and_the_page_quotes_no_name(finished, demo):
    out, done = finished
    for path in [out, *out.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert read_findings(out / "findings.json") == list(done.results.findings.findings)
    page = (out / "tables.md").read_text()
    assert "Secret." in page and "## Settings" in page and "## Limits" in page
    assert str(demo) not in page
    people = read_patients(demo / "patients.parquet").values()
    names = {token.lower() for person in people for token in person.name if len(token) > 4}
    common = {"large", "given", "price"}
    assert not names & set(re.findall(r"[a-z]+", page.lower())) - common


def test_a_second_run_does_nothing_again_and_a_change_only_what_it_affects(finished, demo, capsys):
    out, done = finished
    again = run(*files(demo), out, settings(*TINY))
    assert capsys.readouterr().err == ""
    assert again.results.findings.findings == done.results.findings.findings
    run(*files(demo), out, settings(*TINY, 'metric=["cosine", "euclidean"]'))
    assert capsys.readouterr().err.splitlines() == [
        "attack: skip-gram, window 3, 8 d, count 1+, euclidean",
        "attack: CBOW, window 3, 8 d, count 1+, euclidean",
        "attack on names in all models",
    ]


@pytest.mark.slow
def test_processes_give_the_same(finished, demo, tmp_path):
    other = run(*files(demo), tmp_path / "out", settings(*TINY, "workers=2"))
    assert other.results.findings.findings == finished[1].results.findings.findings


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Notes in which each name stands by its own diagnosis and nothing else: truth is nearest."""
    folder = tmp_path_factory.mktemp("planted")
    letters = "bcdfghjklmnprstvwz"
    word = [f"{a}{v}{b}{w}" for a in letters for v in "ao" for b in letters for w in "iu"]
    illness = [f"{w}itis" for w in word[120:132]]
    people = [Patient(f"p{n}", (word[n], word[60 + n]), (f"c{n % 12}",)) for n in range(60)]
    texts = [" ".join([*p.name, illness[n % 12]] * 25) for n, p in enumerate(people)]
    notes = memory_corpus(
        [(f"n{n}-{m}", p.patient_id, texts[n]) for n, p in enumerate(people) for m in range(3)]
    )
    write_corpus(notes.batches(), folder / "notes.parquet", notes.columns, ".parquet")
    write_patients(people, folder / "patients.parquet")
    write_codes({f"c{n}": illness[n] for n in range(12)}, folder / "codes.csv")
    return folder


def planted_run(folder, out, *changes):
    targets = ", ".join(f'"c{n}"' for n in range(12))
    own = ['algorithm=["skipgram"]', "miss_rate=1.0", "epochs=10", "dim=16", "draws=199"]
    own += ["window=2", f"target=[{targets}]", "mode=none"]
    changed = {change.partition("=")[0] for change in (*own, *changes)}
    kept = [change for change in TINY if change.partition("=")[0] not in changed]
    return run(*files(folder), out, settings(*kept, *own, *changes)).results.findings


def test_a_planted_truth_is_found_by_every_attack(planted):
    findings = planted_run(planted, planted / "true")
    names = findings.first("attack.names", *ONE)
    assert names.value > 0.9 and names.chance < 0.02 and names.control < 0.2
    assert names.numbers["p_over_models"] <= 0.02
    apart = findings.first("attack.association_difference", *ONE)
    assert apart.value < -0.1 and apart.p <= 0.01
    assert abs(apart.control) < abs(apart.value) / 4
    near = findings.first("attack.scenario", *ONE, "nearest", "A@1")
    assert near.value > 0.9 and near.chance < 0.3 and near.control < 0.4


def test_names_redrawn_in_every_note_leave_attack_1_nothing(planted):
    findings = planted_run(planted, planted / "redrawn", "redrawn=true", 'metric=["cosine"]')
    names = findings.first("attack.names", *ONE)
    assert names.value < 0.1 and names.p > 0.01


@pytest.mark.slow
def test_surrogates_are_among_the_names_in_mode_replace(demo, tmp_path):
    changes = ("mode=replace", 'metric=["cosine"]')
    done = run(*files(demo), tmp_path / "out", settings(*TINY, *changes))
    leaked = done.results.findings.all("attack.names_leaked")
    assert len(leaked) == 2
    assert all(f.numbers["surrogate_names"] == PATIENTS / 2 for f in leaked)


def test_a_model_that_cannot_be_trained_does_not_end_the_run(demo, tmp_path):
    kept = [change for change in TINY if not change.startswith("algorithm")]
    changes = ('algorithm=["cbow"]', 'metric=["cosine"]', "min_count=[1, 10000000]")
    done = run(*files(demo), tmp_path / "out", settings(*kept, *changes))
    reason = done.results.missing["CBOW, window 3, 8 d, count 10000000+"]
    assert "training requires two" in reason and done.results.findings.findings
    assert any("count 10000000+" in remark for remark in done.tables[0].remarks)
    with pytest.raises(UsageError, match="no model could be attacked"):
        run(*files(demo), tmp_path / "none", settings(*TINY, "min_count=10000000"))


def test_bad_files_are_refused_before_any_work(demo, tmp_path, capsys):
    notes, patients, codes = files(demo)
    bad = tmp_path / "codes.csv"
    bad.write_text("code\n1\n")
    with pytest.raises(InputError, match=r"codes\.csv"):
        run(notes, patients, bad, tmp_path / "out", settings(*TINY))
    with pytest.raises(InputError):
        run(tmp_path / "none.parquet", patients, codes, tmp_path / "out", settings(*TINY))
    assert not (tmp_path / "out").exists() and capsys.readouterr().err == ""


def test_the_script_prints_tables_and_reports_mistakes_in_one_line(
    finished, demo, capsys, monkeypatch
):
    notes, patients, codes = map(str, files(demo))
    command = ["run", notes, "--patients", patients, "--codes", codes, "-o", str(finished[0])]
    sets = [part for change in TINY for part in ("--set", change)]
    monkeypatch.setattr(sys, "argv", [*command, *sets])
    assert exit_code_of(main) == 0
    assert "| 3 | 369 (61.5) | **" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*command, "--set", "windows=1"])
    assert exit_code_of(main) == 2
    assert "no setting windows" in capsys.readouterr().err


def test_the_default_grid_is_the_papers():
    assert len(grid_of(settings())) == 15
    paper = settings(f"window={[*range(1, 12)]}", "dim=100", 'glove_variant=["pair", "single"]')
    assert len(set(grid_of(paper))) * len(paper.metric) == 88
    assert len(main_models(paper)) == 33  # one GloVe per window has room in the tables
    assert FIGURE_3.label == "GloVe, one vector per word, window 10, 100 d, count 1+"


@pytest.mark.parametrize(
    "change", ['algorithm=["word2vec"]', "metric=[]", "window=0", "miss_rate=0.0", "miss_rate=1.5"]
)
def test_settings_that_make_no_sense_are_refused(change):
    with pytest.raises(UsageError, match=change.partition("=")[0].replace("_", ".")):
        settings(change)
