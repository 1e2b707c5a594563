"""Paper A: the script on 60 invented patients, its grid, and the means that its tables show."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
from papers.jamia_2020.run import grid_of, main
from papers.jamia_2020.settings import ObfuscationSettings
from papers.jamia_2020.tables import means
from papers.tables import shown

from clinveil import Finding, UsageError
from clinveil.core import load_settings, words
from clinveil.corpus import write_demo
from clinveil.stats import MeasureSpec

SETTINGS = Path(main.__code__.co_filename).with_name("settings.toml")
QUICK = (
    "workers=1",
    "n=3",
    "algorithm=cbow",
    "model=lr",
    "repetitions=2",
    "dim=8",
    "epochs=1",
    "max_documents=150",
    "max_tokens=40",
    "min_class=8",
    "subwords=false",
)


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    return write_demo(tmp_path_factory.mktemp("demo") / "demo", 60, 1).files[0]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "words.csv"
    path.write_text("term1,term2,score\npain,fever,3\npain,ache,8\nleft,right,6\nheart,chest,7\n")
    return path


@pytest.fixture(scope="module")
def done(notes, pairs, tmp_path_factory):
    """The folder of a finished run, and the arguments of the run."""
    out = tmp_path_factory.mktemp("run") / "out"
    arguments = [str(notes), "-o", str(out), "--label", "diagnosis_group", "--pairs", str(pairs)]
    arguments += [part for setting in QUICK for part in ("--set", setting)]
    assert main(arguments) == 0
    return out, arguments


def test_every_table_of_the_paper_is_written(done):
    page = (done[0] / "tables.md").read_text()
    titles = [line for line in page.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Table 1: an example note",
        "## Table 2: the corpus",
        "## Table 3: word similarity",
        "## Table 4 and Figure 2: classification",
        "## Single tokens",
        "## Settings",
        "## Limits",
    ]
    assert re.search(r"^\| patients \| 542,651 \| \d+ \|$", page, re.MULTILINE)
    assert "| Pedersen, paper | all | 0.61 | 0.54 (0.51 to 0.56) |" in page
    assert "| N = 3, cbow; lr |" in page and "| PHI removed; lr |" in page
    assert "- n: ('0', '3')" in page


def test_the_example_note_changes_as_its_setting_says(done):
    page = (done[0] / "tables.md").read_text()
    notes = dict(line.strip("| ").split(" | ") for line in page.splitlines() if "diabetes" in line)
    assert "Whitfield" in notes["original"]
    assert "Whitfield" not in notes["PHI removed"] + notes["PHI replaced"]
    (obfuscated,) = [
        line.split(" | ")[1]
        for line in page.splitlines()
        if line.startswith("| N = 3, cbow |") and "0." not in line
    ]
    original = words(notes["original"])
    released = obfuscated.strip(" |").split()
    assert len(original) == len(released)
    assert not any(a == b for a, b in zip(original, released, strict=True))


def test_the_original_loses_exactly_nothing(done):
    findings = json.loads((done[0] / "findings.json").read_text())["findings"]
    losses = [
        finding
        for finding in findings
        if finding["measure"].endswith("_loss") and finding["labels"][0] == "original"
    ]
    assert [(f["value"], f["low"], f["high"]) for f in losses] == [(0, 0, 0)] * 2
    assert all(f["control"] is not None for f in findings if f["measure"] == "attack.inversion")


def test_results_are_for_the_owner_only(done):
    out, _ = done
    for folder in (out, out / "cache"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("tables.md", "findings.json"):
        assert stat.S_IMODE((out / name).stat().st_mode) == 0o600


def test_the_same_call_trains_nothing_again(done, capsys):
    out, arguments = done
    page = (out / "tables.md").read_text()
    results = {path: path.stat().st_mtime_ns for path in out.rglob("output.pkl")}
    assert results and main(arguments) == 0
    assert {path: path.stat().st_mtime_ns for path in out.rglob("output.pkl")} == results
    assert (out / "tables.md").read_text() == page
    printed = capsys.readouterr().out
    assert "Table 4" in printed and "Table 1" not in printed  # Table 1 has words of the notes


def grid(notes, *sets, label="diagnosis_group", pairs=()):
    settings = load_settings(ObfuscationSettings, {}, SETTINGS, sets)
    return grid_of(notes, label, pairs, settings)


def test_the_default_grid_is_the_papers(notes):
    plan = grid(notes)
    neighbours = {
        f"N = {n}, {a}" for n in ("3", "5", "7", "9", "3-14") for a in ("cbow", "skipgram")
    }
    labels = [setting.label for setting in plan.protections]
    assert labels[:3] == ["original", "PHI removed", "PHI replaced"]
    assert set(labels[3:]) == neighbours and len(labels) == 13
    models = {run.model for comparison in plan.comparisons for run in comparison.treated}
    assert models == {"lr", "svm", "cnn", "lstm"}
    assert len({comparison.transfer for comparison in plan.comparisons}) == 4 + 1
    for comparison in plan.comparisons:
        if not comparison.transfer:
            assert comparison.original[0].training == comparison.treated[0].training


def test_word_pairs_are_repeated_for_every_n(notes, pairs):
    plan = grid(notes, "repetitions=4", label=None, pairs=[pairs])
    assert not plan.comparisons
    scored = [(s.treatment.setting.n or "0", s.treatment.repetition) for s in plan.scorings]
    assert scored == [(n, k) for n in ("0", "3", "5", "7", "9", "3-14") for k in range(4)]


@pytest.mark.parametrize("setting", ["n=1", "n=5-3", "n=x", "model=bert", "algorithm=glove"])
def test_settings_that_do_not_fit_are_refused(setting):
    with pytest.raises(UsageError):
        load_settings(ObfuscationSettings, {}, SETTINGS, [setting])


def test_a_label_or_word_pairs_are_required(notes, tmp_path, capsys):
    assert main([str(notes), "-o", str(tmp_path / "out")]) == 2
    assert "--label COLUMN" in capsys.readouterr().err


def correlated(value, chance_high=0.2):
    """A finding of one repetition; at chance it has no value, as `similarity` returns it."""
    labels = ("cbow", "3", "x")
    numbers = {"pairs": 50, "scored": 40, "chance_high": chance_high}
    if value > chance_high:
        return Finding("utility.similarity", value, 40, "higher", labels=labels, numbers=numbers)
    why = "no evidence: at chance"
    spec = MeasureSpec(measure="utility.similarity")
    return spec.missing(why, 40, labels=labels, numbers={**numbers, "correlation": value})


def test_repetitions_are_means_with_intervals():
    (mean,) = means([correlated(0.4), correlated(0.5)])
    assert mean.n == mean.numbers["repetitions"] == 2
    assert mean.low < mean.value < mean.high and mean.value == pytest.approx(0.45)
    (mixed,) = means([correlated(0.1), correlated(0.5)])  # one of them at chance
    assert mixed.value == pytest.approx(0.3)


def test_a_mean_at_chance_is_no_evidence_however_narrow_its_interval():
    repetitions = [correlated(0.097), correlated(0.098)]
    (mean,) = means(repetitions)
    assert mean.value is None and (mean.low, mean.high) == (None, None)
    assert shown(mean) == "no evidence (0.098)"
