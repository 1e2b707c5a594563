"""`clinveil demo`: three releases of invented notes, their table and page, and runs again."""

from __future__ import annotations

import hashlib
import json
import stat

import pyarrow.parquet as pq
import pytest

from clinveil.cli import main
from clinveil.comparison import run
from clinveil.core import InputError, read_findings
from clinveil.corpus import write_demo

KINDS = ("deidentified", "obfuscated", "synthetic")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder of a demo of few patients."""
    out = tmp_path_factory.mktemp("demo") / "demo"
    assert main(["demo", "-o", str(out), "--patients", "60", "--workers", "1", "-q"]) == 0
    return out


def again(demo, capsys, *flags):
    capsys.readouterr()
    code = main(["demo", "-o", str(demo), "--workers", "1", *flags])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_every_kind_is_in_the_table_and_the_page(demo, capsys):
    code, shown, said = again(demo, capsys)
    assert code == 0
    assert all(f"{kind}: measured before" in said for kind in KINDS[:2])
    assert shown.split("\n")[0].split() == list(KINDS)
    for head in ("reads like", "use", "worst risk", "agreement", "public"):
        assert any(line.startswith(head) for line in shown.splitlines()), head
    assert f"page     {demo / 'compare.html'}" in shown
    assert shown.rstrip().splitlines()[-1].startswith("next     clinveil ")
    page = (demo / "compare.html").read_text()
    assert all(f'<th scope="row">{kind}' in page for kind in KINDS)
    assert "Invented notes." in page and "Secret." not in page


def test_a_kind_that_cannot_be_made_has_its_reason_and_the_demo_ends_well(
    demo, capsys, monkeypatch
):
    def few(notes, settings, **more):
        if settings.kind == "synthetic":
            raise InputError("a label has fewer than 5 patients")
        return iter(())

    monkeypatch.setattr(run, "dry_run", few)
    (demo / "runs/synthetic.json").unlink()
    code, shown, _ = again(demo, capsys)
    assert code == 0
    assert "not made synthetic: a label has fewer than 5 patients" in shown
    assert "a label has fewer than 5 patients" in (demo / "compare.html").read_text()


def test_the_same_words_of_one_note_are_shown(demo, capsys):
    """The phrase of the readable release is in its notes, without the name of the patient."""
    _, shown, _ = again(demo, capsys)
    measured = json.loads((demo / "runs/deidentified.json").read_text())["measured"]
    phrase = measured["phrase"]
    assert len(phrase.split()) >= 5
    assert phrase[:20] in shown
    folder = demo / "runs/deidentified"
    kept = (folder / "release", folder / "vault" / "refused")
    texts = [
        " ".join(row["text"].split())
        for place in kept
        if (place / "notes.parquet").exists()
        for row in pq.read_table(place / "notes.parquet").to_pylist()
    ]
    assert any(phrase in text for text in texts)


def test_the_table_is_that_of_the_findings_of_each_release(demo):
    compared = read_findings(demo / "findings.json")
    for kind in KINDS[:2]:
        own = {f.measure: f.value for f in read_findings(demo / f"runs/{kind}/vault/findings.json")}
        shown = {f.measure: f.value for f in compared if f.labels[0] == kind}
        assert own.keys() <= shown.keys()
        assert own["utility.language_model"] == shown["utility.language_model"]


def test_each_release_has_a_key_of_its_own_and_no_ledger(demo):
    keys = {(demo / f"runs/{kind}/vault/key.bin").read_bytes() for kind in KINDS[:2]}
    assert len(keys) == 2
    assert not [path for path in demo.rglob("*") if "ledger" in path.name]


def test_all_but_a_release_is_for_the_owner_only(demo):
    assert (demo / "ABOUT.txt").read_text().startswith("INVENTED")
    for path in [demo, *(demo / "notes").rglob("*"), *demo.glob("*.*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path.name


def test_an_interrupted_demo_makes_only_what_is_missing(demo, capsys):
    before = hashlib.sha256((demo / "runs/obfuscated.json").read_bytes()).hexdigest()
    (demo / "runs/deidentified.json").unlink()
    code, _, said = again(demo, capsys)
    assert code == 0
    assert "measure deidentified" in said and "obfuscated: measured before" in said
    after = hashlib.sha256((demo / "runs/obfuscated.json").read_bytes()).hexdigest()
    assert after == before


def test_other_content_is_refused_and_kept(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("x")
    code, _, said = again(tmp_path / "mine", capsys)
    assert code == 2 and "mine" in said
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_too_few_patients_are_refused_before_anything_is_written(tmp_path, capsys):
    code, _, said = again(tmp_path / "few", capsys, "--patients", "49")
    assert code == 2 and "50" in said
    assert not (tmp_path / "few").exists()


def test_brief_notes_are_the_first_of_each_patient_and_rare_groups_are_one(tmp_path):
    write_demo(tmp_path / "all", 40, 1)
    write_demo(tmp_path / "brief", 40, 1, brief=True)
    full = pq.read_table(tmp_path / "all/notes.parquet").to_pylist()
    brief = pq.read_table(tmp_path / "brief/notes.parquet").to_pylist()
    first = {row["patient_id"]: row for row in reversed(full)}
    assert [row["text"] for row in brief] == [first[row["patient_id"]]["text"] for row in brief]
    assert len(brief) == 40 == len({row["patient_id"] for row in brief})
    groups = {row["diagnosis_group"] for row in brief}
    assert "other" in groups and groups < {row["diagnosis_group"] for row in full} | {"other"}
