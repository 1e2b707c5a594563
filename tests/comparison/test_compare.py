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
from clinveil.comparison import CompareSettings, Comparison, compare_releases, table_of
from clinveil.comparison.run import public_texts
from clinveil.comparison.settings import BUILT_IN, candidates
from clinveil.comparison.table import MeasuredRelease
from clinveil.core import (
    Finding,
    InputError,
    NotesSettings,
    UsageError,
    load_settings,
    read_findings,
)
from clinveil.corpus import HeldOutPatients, open_corpus, rows, write_demo

ROLES = NotesSettings(text="text", id="note_id", patient="patient_id", preset="none")


def settings(**more):
    return load_settings(CompareSettings, {"label": "diagnosis_group", "workers": 1, **more})


QUICK = {"kind": ("obfuscated", "deidentified"), "setting": ("small=kind=obfuscated,channel.n=5",)}
NAMES = ["obfuscated", "deidentified", "paper", "small"]  # the kind of `paper` is obfuscated


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


def test_a_row_for_each_release(done):
    comparison, _ = done
    table = table_of(comparison)
    assert [row[0] for row in table.rows] == [
        "obfuscated",
        "deidentified",
        "paper (obfuscated)",
        "small (obfuscated)",
    ]
    assert all(len(row) == len(table.heads) for row in table.rows)
    cells = dict(zip(table.heads, table.rows[0], strict=True))
    figure = r"\d+\.\d+ \(\d+\.\d+\)"
    found, names, stolen = (
        cells[head].split(" / ") for head in ("Notes found, %", "Names, %", "Stolen, %")
    )
    for part in (*found, *names, *stolen):
        # Chance is next to every figure; few names give some attackers no case.
        assert re.fullmatch(f"(planted )?{figure}|=|–", part), cells
    assert "–" not in (*found, stolen[0]), cells
    risks = [
        float(row[table.heads.index("Notes found, %")].split(" ")[0]) for row in table.rows[:2]
    ]
    assert risks[1] > 50 > risks[0]  # notes are found in readable text, and not in codes
    assert all(count.isdigit() for count in cells["Gates"].split(" / "))
    assert any(
        "deidentified, names" in reason and "released unchanged" in reason
        for reason in table.reasons
    )
    text = table.markdown()
    assert text.count("\n| ") == 2 + len(NAMES) and "| --- | ---: |" in text
    assert all(f"**{head}**" in text for head in table.heads[1:])


def named(value, holding, target="names", chance=0.2):
    finding = Finding("attack.reading.names", value, 100, chance=chance)
    return tagged(finding, holding, target)


def cells_of(*findings, kind="obfuscated"):
    measured = MeasuredRelease("x", kind, tuple(findings), 1.0, 100, {})
    table = table_of(Comparison(settings(), 100, 100, (measured,), Path("x")))
    return dict(zip(table.heads, table.rows[0], strict=True))


def test_an_attacker_who_holds_more_is_at_least_as_strong_and_chance_is_next_to_the_figure():
    made = [
        named(0.233, "recipient"),
        named(0.122, "shadow"),
        named(0.3, "pairs-20"),
        named(0.1, "stolen-vectors"),
    ]
    cells = cells_of(*made, named(0.03, "recipient", "note by ten words", 0.004))
    assert cells["Names, %"] == "23.3 (20.0) / = / 30.0 (20.0)"
    assert cells["Notes found, %"] == "3.0 (0.4) / ="
    assert cells["Stolen, %"] == "= / ="  # nothing that a recipient has not got


def test_one_target_is_shown_for_all_attackers_of_a_column():
    """Names of few patients have a high chance; planted names are nearer to what an attacker
    recovers.
    """
    made = [named(0.5, "recipient", chance=0.5), named(0.52, "shadow", chance=0.5)]
    planted = [named(0.04, holding, "planted names", 0.03) for holding in ("recipient", "shadow")]
    assert cells_of(*made, *planted)["Names, %"] == "50.0 (50.0) / 52.0 (50.0) / –"
    more = [
        named(value, holding, "planted names", 0.03)
        for holding, value in (("recipient", 0.04), ("shadow", 0.2))
    ]
    assert cells_of(*made, *more)["Names, %"] == "planted 4.0 (3.0) / planted 20.0 (3.0) / –"


def test_membership_has_a_column_where_notes_are_synthetic():
    found = tagged(
        Finding("attack.membership", 0.7, 900, "lower", 0.65, 0.75, 0.5), "recipient", "membership"
    )
    assert cells_of(found, kind="synthetic")["Membership"] == "0.70 (0.5, 0.65 to 0.75)"
    assert "Membership" not in cells_of(found)


def test_all_releases_are_tested_on_the_same_patients(done):
    comparison, _ = done
    first, *others = (
        HeldOutPatients.read(vault) for vault in sorted(comparison.folder.glob("runs/*/vault"))
    )
    assert first.patients and others
    assert all(split == first and split.unread for split in others)


def test_releases_fail_only_for_other_reasons_than_the_test_seed(done):
    comparison, _ = done
    assert all("no test seed" not in measured.failed for measured in comparison.releases)
    assert all(measured.gates["passed"] > 0 for measured in comparison.releases)


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
    assert "default-src 'none'" in page and '<th scope="row">deidentified</th>' in page


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
    assert said == [f"{name}: measured before" for name in NAMES]
    assert again.releases == comparison.releases


def test_an_interrupted_comparison_makes_only_what_is_missing(done, notes):
    out = done[0].folder
    said = []
    (out / "runs/deidentified.json").unlink()
    compare_releases(notes, out, settings(**QUICK), said.append)
    assert "measure deidentified" in said and "obfuscated: measured before" in said


def test_settings_become_releases():
    made = {
        each.name: each.settings for each in candidates(settings(setting=("wide=channel.n=7-20",)))
    }
    assert list(made) == [*BUILT_IN, "wide"]
    assert str(made["wide"].channel.n) == "7-20" and made["wide"].kind == "obfuscated"
    assert made["paper"].vectors.algorithm == "cbow"
    assert {each.label for each in made.values()} == {made["obfuscated"].label}
    assert {each.seed for each in made.values()} == {1}
    (strict,) = candidates(settings(setting=("s=config=strict",)))[-1:]
    assert (strict.name, str(strict.settings.channel.n)) == ("s", "7-20")
    chosen = candidates(
        settings(
            kind=("deidentified",), setting=("s=kind=deidentified,measure_words=0", "w=channel.n=5")
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
    with pytest.raises(UsageError, match=message):
        candidates(settings(setting=(given,)))


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
    assert default.why in "".join(table_of(comparison).reasons)
    assert not free.why and any(f.measure == "utility.transfer" for f in free.findings)


def test_utility_that_was_not_measured_gives_the_reason(tmp_path):
    why = "Not measured: the label has one class."
    findings = tuple(
        Finding(f"utility.{task}", None, 0, "higher", why=why) for task in ("transfer", "within")
    )
    comparison = Comparison(
        settings(), 100, 60, (MeasuredRelease("obfuscated", "obfuscated", findings),), tmp_path
    )
    assert table_of(comparison).reasons == (
        "(obfuscated, classifier; obfuscated, within): Not measured: the label has one class.",
    )


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
