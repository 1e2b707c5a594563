"""The residue gate refuses notes whose identifiers a detector missed, and passes where the
detectors are complete.
"""

from __future__ import annotations

import json
import shlex
import stat

import numpy as np
import pytest
from kind_cases import WORDS

from clinveil.cli import main
from clinveil.phi import open_desk, review_queue
from clinveil.phi.detection import finder
from clinveil.phi.review.past_runs import past_run
from no_limits import NO_LIMITS

NOTES = 60
SENTENCE = "The {} was {} and the {} of the {} is now {} with {}."
# Forms of each class that today's detectors find.
FORMS = {
    "dates": [
        "{m}/{d}/2019",
        "2019-{m:02d}-{d:02d}",
        "March {d}, 2019",
        "{d}-Dec-2019",
        "{m}/{d}/19",
    ],
    "phones": ["216-555-0{n:03d}", "(216) 555-0{n:03d}", "216.555.0{n:03d}"],
    "record_numbers": ["MRN 00{n:03d}471", "MRN: 536{n:03d}12", "SSN 536-22-1{n:03d}"],
    "mail": ["j.doe{n}@hosp.example.org", "mail ward{n}@clinic.example.net"],
    "urls": ["https://portal.example.org/p/{n}", "www.clinic{n}.example.com/x"],
}
OFF = {"mail": "emails_urls", "urls": "emails_urls"}  # class -> detector, if the names differ


def write_notes(folder, kind):
    """Write one note per patient; each has an identifier of this class."""
    rng = np.random.default_rng(5)
    lines = ["note_id,patient_id,text,topic"]
    for number in range(NOTES):
        form = FORMS[kind][number % len(FORMS[kind])]
        planted = form.format(m=number % 12 + 1, d=number % 28 + 1, n=number)
        words = [SENTENCE.format(*rng.choice(WORDS, 6)) for _ in range(6)]
        text = " ".join([*words[:3], f"Noted: {planted}.", *words[3:]])
        lines.append(f'n{number},p{number},"{text}",{"ab"[number % 2]}')
    (folder / "notes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def without(monkeypatch, *names):
    """Switch detectors off."""
    left = tuple(one for one in finder.DETECTORS if one.name not in names)
    monkeypatch.setattr(finder, "DETECTORS", left)


def release(folder, out="out", kind="deidentified", *more):
    command = [
        "release",
        str(folder / "notes.csv"),
        "-o",
        str(folder / out),
        "--as",
        kind,
        "--workers",
        "1",
    ]
    return main([*command, "--quiet", "--again", *more])


def failed_gates(folder, out="out"):
    made = json.loads((folder / out / "vault" / "manifest.json").read_text(encoding="utf-8"))
    gates = made["gates"]
    return [gate["name"] for gate in gates if not gate["passed"]]


RESIDUE = "no residues after treatment"


@pytest.mark.parametrize("kind", FORMS)
def test_a_release_with_the_detector_off_is_refused_and_with_it_on_passes(
    tmp_path, monkeypatch, kind
):
    write_notes(tmp_path, kind)
    assert release(tmp_path, "on") == 0
    without(monkeypatch, OFF.get(kind, kind))
    assert release(tmp_path, "off") == 4
    assert failed_gates(tmp_path, "off") == [RESIDUE]
    assert not (tmp_path / "off" / "release").exists()


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        (
            "obfuscated",
            ["--set", "vectors.dim=12", "--set", "vectors.epochs=1", "--set", "vectors.window=5"],
        ),
        ("synthetic", ["--set", "lm.model=unigram", "--set", "synthetic.count=60"]),
    ],
)
def test_every_kind_with_source_notes_is_judged(tmp_path, monkeypatch, kind, more):
    write_notes(tmp_path, "dates")
    without(monkeypatch, "dates")
    assert release(tmp_path, "off", kind, *more) == 4
    assert RESIDUE in failed_gates(tmp_path, "off")


def test_residues_are_in_the_vault_with_context_for_the_owner_only(tmp_path, monkeypatch):
    write_notes(tmp_path, "phones")
    without(monkeypatch, "phones")
    release(tmp_path)
    path = tmp_path / "out" / "vault" / "residues.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert {line["note_id"] for line in lines} == {f"n{number}" for number in range(NOTES)}
    assert all(line["text"] in line["context"] and "Noted" in line["context"] for line in lines)


def test_part_files_give_the_same_verdict_and_residues(tmp_path, monkeypatch):
    write_notes(tmp_path, "phones")
    lines = (tmp_path / "notes.csv").read_text(encoding="utf-8").splitlines()
    parts = tmp_path / "parts"
    parts.mkdir()
    for number in range(3):
        part = [lines[0], *lines[1 + number * 20 : 21 + number * 20]]
        (parts / f"part-{number}.csv").write_text("\n".join(part) + "\n", encoding="utf-8")
    without(monkeypatch, "phones")
    command = ["--as", "deidentified", "--workers", "1", "--quiet", "--again"]
    assert release(tmp_path) == 4
    assert main(["release", str(parts), "-o", str(tmp_path / "parted"), *command]) == 4
    one, several = (tmp_path / out / "vault" / "residues.jsonl" for out in ("out", "parted"))
    assert one.read_text(encoding="utf-8") == several.read_text(encoding="utf-8")


def test_without_a_limit_residues_do_not_refuse(tmp_path, monkeypatch):
    write_notes(tmp_path, "phones")
    without(monkeypatch, "phones")
    assert release(tmp_path, "out", "deidentified", "--limits", str(NO_LIMITS)) == 0


def test_demo_notes_have_no_residues(demo, tmp_path):
    notes = demo / "demo" / "notes.parquet"
    patients = demo / "demo" / "patients.parquet"
    line = f"release {notes} -o {tmp_path / 'out'} --as deidentified --patients {patients}"
    assert main([*line.split(), "--again", "--workers", "1", "--quiet"]) == 0
    assert (tmp_path / "out" / "vault" / "residues.jsonl").read_text(encoding="utf-8") == ""


def test_decisions_of_a_review_are_applied_by_a_release(tmp_path, monkeypatch):
    write_notes(tmp_path, "phones")
    without(monkeypatch, "phones")
    check = tmp_path / "check.csv"
    deidentify = shlex.split(f"deidentify {tmp_path / 'notes.csv'} -o {check} --workers 1 -q")
    assert main(deidentify) == 4
    run = past_run(check)
    with open_desk(run, review_queue(run.entries(), NOTES, "worst"), "first") as desk:
        for at, entry in enumerate(desk.entries):
            spans = [[span.start, span.end, span.label] for span in entry.residues]
            desk.act(at, [{"place": s[:2], "verdict": "keep", "span": s} for s in spans], True)
    vault = check.with_name("check.csv.vault")
    assert release(tmp_path, "out", "deidentified", "--reviewed", str(vault)) == 0
    written = (tmp_path / "out" / "release" / "notes.csv").read_text(encoding="utf-8")
    source = (tmp_path / "notes.csv").read_text(encoding="utf-8")
    phones = [line.split("Noted: ")[1].split(". ")[0] for line in source.splitlines()[1:]]
    assert not [phone for phone in phones if phone in written]


def test_the_report_says_in_which_order_dates_were_read(tmp_path):
    write_notes(tmp_path, "dates")
    assert release(tmp_path, "out") == 0
    record = json.loads((tmp_path / "out" / "vault" / "record.json").read_text(encoding="utf-8"))
    facts = record["corpus"]["more"]
    orders = {f["label"]: f["value"] for f in facts if "numeric dates" in f["label"]}
    assert sum(orders.values()) > 0
    assert {*orders} <= {f"notes with numeric dates, {order} first" for order in ("day", "month")}
