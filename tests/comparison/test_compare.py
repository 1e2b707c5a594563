"""`clinveil compare`: its releases, table and page, resuming, and input that does not fit."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clinveil
from clinveil.attacks.threats import tagged
from clinveil.cli import main
from clinveil.comparison import (
    AudienceVerdict,
    CompareSettings,
    Comparison,
    MeasuredRelease,
    compare_releases,
    table_of,
)
from clinveil.comparison.run import public_texts
from clinveil.comparison.settings import BUILT_IN, candidates
from clinveil.core import (
    Finding,
    InputError,
    NotesSettings,
    UsageError,
    load_settings,
    read_findings,
    sha256,
)
from clinveil.corpus import HeldOutPatients, open_corpus, rows, write_demo
from clinveil.releases import release

ROLES = NotesSettings(text="text", id="note_id", patient="patient_id", preset="none")


def settings(**more):
    return load_settings(CompareSettings, {"label": "diagnosis_group", "workers": 1, **more})


QUICK = {"kind": ("obfuscated", "deidentified"), "setting": ("small=kind=obfuscated,channel.n=5",)}
NAMES = ["obfuscated", "deidentified", "small"]


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """One short note of each of 75 invented patients."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder / "demo", patients=75, seed=1)
    table = pq.read_table(folder / "demo" / "notes.parquet")
    seen: set[str] = set()
    first = [not (p in seen or seen.add(p)) for p in table["patient_id"].to_pylist()]
    pq.write_table(table.filter(pa.array(first)), folder / "notes.parquet")
    return folder / "notes.parquet"


@pytest.fixture(scope="module")
def done(notes, tmp_path_factory):
    out = tmp_path_factory.mktemp("compare") / "out"
    said = []
    return compare_releases(notes, out, settings(**QUICK), said.append), said


def entries_of(row):
    """Label -> text of all entries of a row; an entry without a number may have several labels."""
    return {label: entry.text for cell in row.cells for entry in cell for label in [entry.label]}


def test_a_row_for_each_release_with_two_verdicts(done):
    comparison, _ = done
    table = table_of(comparison)
    assert [row.name for row in table.rows] == [
        "obfuscated",
        "deidentified",
        "small (obfuscated)",
    ]
    assert all(len(row.verdicts) == 2 for row in table.rows)
    text = table.markdown()
    assert text.count("\n| ") == 2 + len(NAMES) and "| --- | --- |" in text
    assert all(f"**{label}**" in text for label, _ in table.meanings)


def test_every_figure_is_that_of_the_findings(done):
    """The page says what the findings of each release say."""
    comparison, _ = done
    findings = read_findings(comparison.folder / "findings.json")
    page = (comparison.folder / "compare.html").read_text()
    for measured, row in zip(comparison.releases, table_of(comparison).rows, strict=True):
        own = [f for f in findings if f.labels[0] == measured.name]
        found = max(
            f.value - f.chance
            for f in own
            if f.cell and f.cell.holding == "recipient" and f.cell.target == "note by ten words"
        )
        shown = entries_of(row)["notes found from ten words"]
        value, chance = (float(part) for part in re.findall(r"\d+\.\d+", shown))
        assert value - chance == pytest.approx(100 * found, abs=0.11)
        assert shown in page
        transfer = next(f for f in own if f.measure == "utility.transfer")
        classifier = entries_of(row).get("classifier", "")
        if transfer.value is not None:
            assert classifier.startswith(f"{100 * transfer.scores.of_ceiling:.0f}")
        may_leave = {f.labels[2]: f.value for f in own if f.measure == "compare.may_leave"}
        assert may_leave == {name: one.may_leave for name, one in measured.verdicts.items()}


def test_chance_or_a_control_is_next_to_every_risk_and_a_reason_to_every_empty_cell(done):
    comparison, _ = done
    table = table_of(comparison)
    reasons = dict(table.reasons)
    for row in table.rows:
        for cell in row.cells[1:]:
            for entry in cell:
                assert entry.note in reasons if entry.text == "–" else "c" in entry.text, row.name
        for entry in row.cells[0]:
            assert entry.text != "–" or entry.note in reasons
    assert all(len(why) > 20 for why in reasons.values())


def named(value, holding, target="names", chance=0.2):
    finding = Finding("attack.reading.names", value, 100, chance=chance)
    return tagged(finding, holding, target)


def comparison_of(*releases, **more):
    folder = Path("x")
    return Comparison("diagnosis_group", ("tfidf-lr",), 100, 100, releases, folder, **more)


def cells_of(*findings, kind="obfuscated"):
    measured = MeasuredRelease("x", kind, tuple(findings), 1.0, 100)
    return {
        label: text.replace("\u202f", " ")
        for label, text in entries_of(table_of(comparison_of(measured)).rows[0]).items()
    }


def test_an_attacker_who_holds_more_is_at_least_as_strong_and_chance_is_next_to_the_figure():
    made = [
        named(0.233, "recipient"),
        named(0.122, "shadow"),
        named(0.3, "pairs-20"),
        named(0.1, "stolen-vectors"),
    ]
    cells = cells_of(*made, named(0.03, "recipient", "note by ten words", 0.004))
    assert cells["names recovered"] == "23.3 % (chance 20.0 %)"
    assert cells["names, own vectors"] == "23.3 % (chance 20.0 %)"
    assert cells["names, 20 known notes"] == "30.0 % (chance 20.0 %)"
    assert cells["notes found from ten words"] == "3.0 % (chance 0.4 %)"
    assert cells["notes found, own vectors"] == "3.0 % (chance 0.4 %)"
    assert cells["names, stolen vectors"] == "23.3 % (chance 20.0 %)"


def test_one_target_is_shown_for_all_attackers():
    """Names of few patients have a high chance; planted names are nearer to what an attacker
    recovers.
    """
    made = [named(0.5, "recipient", chance=0.5), named(0.52, "shadow", chance=0.5)]
    planted = [named(0.04, holding, "planted names", 0.03) for holding in ("recipient", "shadow")]
    cells = cells_of(*made, *planted)
    assert cells["names recovered"] == "50.0 % (chance 50.0 %)"
    assert cells["names, own vectors"] == "52.0 % (chance 50.0 %)"
    more = [
        named(value, holding, "planted names", 0.03)
        for holding, value in (("recipient", 0.04), ("shadow", 0.2))
    ]
    cells = cells_of(*made, *more)
    assert cells["names recovered"] == "planted 4.0 % (chance 3.0 %)"
    assert cells["names, own vectors"] == "planted 20.0 % (chance 3.0 %)"


def test_membership_has_a_line_where_notes_are_synthetic():
    found = tagged(
        Finding("attack.membership", 0.7, 900, "lower", 0.65, 0.75, 0.5), "recipient", "membership"
    )
    cells = cells_of(found, kind="synthetic")
    assert cells["membership"] == "0.70 (0.65 to 0.75, chance 0.50)"
    assert "membership" not in cells_of(found)


def judged(name, agreement, public):
    verdicts = {
        "agreement": AudienceVerdict(agreement, "May leave." if agreement else "Must not leave."),
        "public": AudienceVerdict(public, "May leave." if public else "Must not leave."),
    }
    return MeasuredRelease(name, "obfuscated", verdicts=verdicts)


def test_the_advice_names_only_releases_that_may_leave():
    table = table_of(comparison_of(judged("a", True, False), judged("b", False, False)))
    assert table.advice.startswith(
        "May leave under an agreement: a. May leave to the public: none of these."
    )
    assert " b " not in table.advice


def test_a_release_that_could_not_be_made_has_its_reason_in_every_form_of_the_table():
    refused = MeasuredRelease("synthetic", "synthetic", why="a label has too few patients")
    table = table_of(comparison_of(judged("a", True, True), refused))
    assert table.rows[1].verdicts[0][1].text == "–"
    for text in (table.markdown(), table.terminal()):
        assert "a label has too few patients" in text


def test_a_refused_release_has_its_verdict_and_no_words():
    invented = {"seed": None}
    table = table_of(comparison_of(judged("a", True, True), judged("b", False, False), **invented))
    (row,) = (row for row in table.rows if row.name.startswith("b"))
    assert [may_leave for may_leave, _ in row.verdicts] == [False, False]
    shown = table.terminal()
    assert "Must not leave." in shown and "its notes were not kept" in shown
    measured = MeasuredRelease("a", "obfuscated", verdicts={}, phrase="as you know")
    shown = table_of(comparison_of(measured, **invented)).terminal()
    assert "not kept" not in shown and "as you know" in shown


def test_words_of_real_notes_stay_off_the_terminal():
    measured = MeasuredRelease("a", "deidentified", verdicts={}, phrase="Mrs Quellfisch is well")
    table = table_of(comparison_of(measured))
    assert table.rows[0].phrase == "Mrs Quellfisch is well"  # for the page, which is secret
    assert "Quellfisch" not in table.terminal() + table.markdown()


def test_the_terminal_shows_at_most_three_releases_side_by_side():
    table = table_of(comparison_of(*(judged(name, True, False) for name in "abcd")))
    lines = table.terminal().splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("---") for line in lines) == 2


def test_the_estimate_comes_before_the_first_release(done):
    _, said = done
    assert "in all roughly" in said[0] and "obfuscated" in said[0]


def test_all_releases_are_tested_on_the_same_patients(done):
    comparison, _ = done
    first, *others = (
        HeldOutPatients.read(vault) for vault in sorted(comparison.folder.glob("runs/*/vault"))
    )
    assert first.patients and others
    assert all(split == first and split.unread for split in others)


def test_findings_name_their_release(done):
    comparison, _ = done
    findings = read_findings(comparison.folder / "findings.json")
    assert {f.labels[0] for f in findings} == {*NAMES}
    seconds = [f for f in findings if f.measure == "compare.seconds"]
    assert [f.value for f in seconds] == [m.seconds for m in comparison.releases]


def test_everything_is_for_the_owner_only(done):
    out = done[0].folder
    assert (out / "SECRET.txt").read_text().startswith("SECRET: all of this comparison.")
    for path in [out, *out.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path.name
    assert not list(out.glob("runs/*/release"))


def test_the_page_runs_no_script_and_loads_nothing(done):
    page = (done[0].folder / "compare.html").read_text()
    assert "<script" not in page and "http" not in page.replace(
        "http://www.w3.org/2000/svg", ""
    ).replace("http-equiv", "")
    assert "default-src 'none'" in page and '<th scope="row">deidentified<small>' in page


def test_a_release_in_a_comparison_is_that_of_a_single_run(done, notes, tmp_path):
    """Detection once for all releases changes nothing."""
    comparison, _ = done
    candidate = next(c for c in candidates(settings(**QUICK)) if c.name == "deidentified")
    outcome = release(notes, tmp_path / "single", candidate.settings)
    single = outcome.folder.refused / "notes.parquet"
    shared = comparison.folder / "runs/deidentified/vault/refused/notes.parquet"
    assert sha256(single) == sha256(shared)
    own = {f.measure: f.value for f in outcome.findings}
    measured = next(m for m in comparison.releases if m.name == "deidentified")
    assert own == {f.measure: f.value for f in measured.findings}


def test_word_vectors_are_trained_once(done):
    runs = done[0].folder / "runs"
    told = [
        json.loads((runs / name / "vault/manifest.json").read_text())["vectors"]["from"]
        for name in ("obfuscated", "small")
    ]
    assert told == ["trained on these notes", "given, not trained on these notes"]


def test_the_same_call_measures_nothing_again(done, notes):
    comparison, _ = done
    said = []
    again = compare_releases(notes, comparison.folder, settings(**QUICK), said.append)
    assert said[1:] == [f"{name}: measured before" for name in NAMES]
    assert again.releases == comparison.releases


def test_an_interrupted_comparison_makes_only_what_is_missing(done, notes):
    out = done[0].folder
    said = []
    (out / "runs/deidentified.json").unlink()
    compare_releases(notes, out, settings(**QUICK), said.append)
    assert "measure deidentified" in said and "obfuscated: measured before" in said


def test_settings_become_releases():
    made = {
        each.name: each.settings
        for each in candidates(settings(setting=("wide=kind=obfuscated,channel.n=7-20",)))
    }
    assert list(made) == [*BUILT_IN, "wide"]
    assert str(made["wide"].channel.n) == "7-20" and made["wide"].kind == "obfuscated"
    assert {each.label for each in made.values()} == {made["obfuscated"].label}
    assert {each.seed for each in made.values()} == {1}
    (strict,) = candidates(settings(setting=("s=kind=obfuscated,config=strict",)))[-1:]
    assert (strict.name, str(strict.settings.channel.n)) == ("s", "7-20")
    chosen = candidates(
        settings(
            kind=("deidentified",),
            setting=("s=kind=deidentified,measure_words=0", "w=kind=obfuscated,channel.n=5"),
        )
    )
    assert [each.name for each in chosen] == ["deidentified", "s"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("wide", "NAME=KEY=VALUE"),
        ("a/b=n=7", "NAME=KEY=VALUE"),
        ("obfuscated=channel.n=7", "the name is in use"),
        ("x=nothing=7", "no setting nothing"),
        ("x=kind=obfuscated,lm.epochs=2", "applies to kind synthetic"),
    ],
)
def test_wrong_settings_are_refused(given, message):
    with pytest.raises(UsageError, match=message) as error:
        candidates(settings(setting=(given,)))
    assert "--setting" in str(error.value)


def test_a_label_is_required(notes, tmp_path, capsys):
    assert main(["compare", str(notes), "-o", str(tmp_path / "out")]) == 2
    assert "--label COLUMN" in capsys.readouterr().err
    with pytest.raises(UsageError, match="no label"):
        clinveil.compare(notes, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_too_few_patients_are_refused_in_one_line_and_nothing_stays(notes, tmp_path):
    pq.write_table(pq.read_table(notes)[:20], tmp_path / "few.parquet")
    with pytest.raises(InputError, match="patients are too few") as error:
        compare_releases(tmp_path / "few.parquet", tmp_path / "out", settings())
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_label_of_few_patients_leaves_the_reason_in_the_row_of_synthetic_notes(notes, tmp_path):
    how = settings(kind=("synthetic",), setting=("free=kind=synthetic,channel.min_patients=1",))
    comparison = compare_releases(notes, tmp_path / "out", how)
    default, free = comparison.releases
    assert not default.findings and "fewer than 5 patients" in default.why
    assert default.why.rstrip(".") in dict(table_of(comparison).reasons).values()
    assert not free.why and any(f.measure == "utility.transfer" for f in free.findings)


def test_utility_that_was_not_measured_gives_the_reason():
    why = "Not measured: the label has one class."
    findings = tuple(
        Finding(f"utility.{task}", None, 0, "higher", why=why) for task in ("transfer", "within")
    )
    table = table_of(comparison_of(MeasuredRelease("obfuscated", "obfuscated", findings)))
    reasons = dict(table.reasons)
    entry = next(e for e in table.rows[0].cells[0] if "classifier" in e.label)
    assert reasons[entry.note] == "Not measured: the label has one class"


def test_public_texts_are_of_patients_of_the_notes(notes, tmp_path):
    patients = {note.patient_id for note in rows(open_corpus(notes, ROLES))}
    ids = sorted(patients)[:3]
    known = tmp_path / "known.csv"
    known.write_text(
        "note_id,patient_id,text\n"
        + "".join(f"k{i},{p},words\n" for i, p in enumerate([*ids, "x"]))
    )
    assert [note.patient_id for note in rows(public_texts(known, patients))] == [*ids, "x"]
    known.write_text("note_id,patient_id,text\nk,x,words\n")
    with pytest.raises(InputError, match="fewer than 2 patients"):
        public_texts(known, patients)


def test_public_text_adds_private_synthetic_releases(tmp_path):
    made = {
        each.name: each.settings
        for each in candidates(settings(public=tmp_path / "p.txt", kind=("synthetic",)))
    }
    assert {name: how.synthetic.epsilon for name, how in made.items()} == {
        "synthetic": None,
        "epsilon-8": 8,
        "epsilon-3": 3,
        "epsilon-1": 1,
    }
    assert made["epsilon-3"].synthetic.public == tmp_path / "p.txt"
    with pytest.raises(UsageError, match="in use"):
        candidates(settings(setting=("epsilon-3=kind=obfuscated",)))
