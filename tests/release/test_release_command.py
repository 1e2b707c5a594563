"""`clinveil release` as its users call it: one run that is looked at from many sides, and the runs
that must fail.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
from itertools import pairwise

import pyarrow.parquet as pq
import pytest
from release_cases import FAST, release
from scipy.stats import spearmanr

from clinveil.attacks import attacks
from clinveil.cli import main
from clinveil.core import read_findings, words
from clinveil.report import outward_finding
from no_limits import NO_LIMITS

MEASURES = True
PLAIN = ["--set", "phi=false", "--limits", str(NO_LIMITS)]


@pytest.fixture
def desk(finished):
    return finished


def copied(desk, tmp_path):
    shutil.copytree(desk / "out" / "release", tmp_path / "release")
    return tmp_path / "release"


def test_two_trees(desk):
    names = {p.name for p in (desk / "out" / "release").iterdir()}
    signed = {"manifest.sig", "signing-key.pem"}
    assert names == {
        "notes.parquet",
        "README.md",
        "manifest.json",
        "report.html",
        "SHA256SUMS",
        *signed,
    }
    vault = desk / "out" / "vault"
    assert stat.S_IMODE(vault.stat().st_mode) == 0o700
    for path in vault.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path.name
    assert {
        "key.bin",
        "vectors",
        "neighbours",
        "channel",
        "crosswalk.parquet",
        "report.html",
    } <= {p.name for p in vault.iterdir()}
    assert not (vault / "work").exists()


def test_rows_columns_and_order(desk):
    source, released = (
        pq.read_table(p) for p in (desk / "demo/notes.parquet", desk / "out/release/notes.parquet")
    )
    kept = [n for n in source.column_names if n != "code"]
    assert released.column_names == kept
    assert not set(released["note_id"].to_pylist()) & set(source["note_id"].to_pylist())
    crosswalk = pq.read_table(desk / "out/vault/crosswalk.parquet")
    assert crosswalk["source_note_id"].to_pylist() == source["note_id"].to_pylist()
    pairs = set(
        zip(source["patient_id"].to_pylist(), crosswalk["patient_id"].to_pylist(), strict=True)
    )
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) == 70
    groups = dict(
        zip(crosswalk["note_id"].to_pylist(), source["diagnosis_group"].to_pylist(), strict=True)
    )
    ids = released["note_id"].to_pylist()
    assert released["diagnosis_group"].to_pylist() == [groups[note_id] for note_id in ids]
    assert sorted(crosswalk["note_id"].to_pylist()) == ids


def test_the_order_of_the_release_tells_nothing_of_that_of_the_source(desk):
    released = pq.read_table(desk / "out/release/notes.parquet")
    crosswalk = pq.read_table(desk / "out/vault/crosswalk.parquet").to_pylist()
    place = {row["note_id"]: number for number, row in enumerate(crosswalk)}
    places = [place[note_id] for note_id in released["note_id"].to_pylist()]
    assert spearmanr(range(len(places)), places).pvalue > 1e-4
    patients = released["patient_id"].to_pylist()
    together = sum(a == b for a, b in pairwise(patients))
    assert together < 0.1 * sum(a["patient_id"] == b["patient_id"] for a, b in pairwise(crosswalk))


def test_released_text_is_plain_words_of_enough_patients(desk):
    texts = pq.read_table(desk / "out/release/notes.parquet")["text"].to_pylist()
    assert all(
        re.fullmatch(r"(?:\w+\.?(?: \w+\.?)*)?", text) and not re.search(r"\d", text)
        for text in texts
    )
    users: dict[str, set[str]] = {}
    channel = set(words(" ".join(texts)))
    source = pq.read_table(desk / "demo/notes.parquet", columns=["patient_id", "text"]).to_pylist()
    for row in source:
        for word in set(words(row["text"])) & channel:
            users.setdefault(word, set()).add(row["patient_id"])
    # Surrogates are words of the protected notes, not of these; every source word that came out has
    # enough users.
    rare = {w for w, patients in users.items() if len(patients) < 3}
    assert len(rare) < 0.05 * len(channel)


def test_findings_and_manifests_agree(desk):
    findings = read_findings(desk / "out/vault/findings.json")
    public = json.loads((desk / "out/release/manifest.json").read_text())
    assert public["findings"] == [outward_finding(f) for f in findings]
    inside = json.loads((desk / "out/vault/manifest.json").read_text())
    assert inside["findings"] == [f.as_dict() for f in findings]
    both = zip(findings, public["findings"], strict=True)
    small = [out for f, out in both if f.unit in ("notes", "patients") and f.count in range(1, 11)]
    assert small, "the demo has no small count to hide"
    assert all(out["count"] is None and out["value"] is None for out in small)
    assert {
        "attack.inversion",
        "attack.own_name",
        "utility.transfer",
    } <= {f.measure for f in findings}
    assert public["accounting"]["read"] == public["accounting"]["written"] + sum(
        public["accounting"]["skipped"].values()
    )
    assert "private" not in public
    assert "training" not in json.dumps(public.get("seeds", {}))
    assert "source_sha256" in json.loads((desk / "out/vault/manifest.json").read_text())["private"]


def test_nothing_released_names_a_place_or_a_source_id(desk):
    ids = set(
        pq.read_table(desk / "demo/notes.parquet", columns=["note_id"])["note_id"].to_pylist()
    )
    for path in (desk / "out" / "release").iterdir():
        if path.suffix != ".parquet":
            text = path.read_text(encoding="utf-8", errors="replace")
            assert (
                str(desk) not in text
                and "/tmp" not in text
                and "/home" not in text
                and "/root" not in text
            )
            assert not ids & set(re.findall(r"[\w-]+", text))
    metadata = pq.read_metadata(desk / "out/release/notes.parquet").metadata or {}
    assert str(desk) not in str(metadata)


def test_verify_passes_and_sees_every_change(desk, tmp_path, capsys):
    assert main(["verify", str(desk / "out" / "release")]) == 0
    for change in ("README.md", "manifest.json", "notes.parquet"):
        folder = copied(desk, tmp_path / change)
        data = (folder / change).read_bytes()
        (folder / change).write_bytes(data[:-3] + b"\nx\n")
        assert main(["verify", str(folder)]) == 4
    folder = copied(desk, tmp_path / "extra")
    (folder / "more.txt").write_text("x")
    assert main(["verify", str(folder)]) == 4
    (folder / "more.txt").unlink()
    (folder / "SHA256SUMS").unlink()
    assert main(["verify", str(folder)]) == 4
    assert "FAILED" in capsys.readouterr().out


def test_a_finished_run_needs_force_and_survives_a_failing_one(desk, capsys):
    assert main(release(desk, "out")) == 2
    assert "--force" in capsys.readouterr().err
    shutil.copytree(desk / "out", desk / "forced")
    assert main(release(desk, "forced", "--force", "--min-patients", "71")) == 3
    before = (desk / "out/release/SHA256SUMS").read_text()
    assert (
        desk / ".forced.replaced/release/SHA256SUMS"
    ).read_text() == before  # its vectors can be resumed from


def test_report_again(desk, tmp_path, capsys):
    target = tmp_path / "r.html"
    assert main(["report", str(desk / "out"), "-o", str(target)]) == 0
    assert target.read_text() == (desk / "out/release/report.html").read_text()
    assert main(["report", str(desk / "out")]) == 0
    before = (desk / "out/release/report.html").read_bytes()
    assert (
        main(["report", str(desk / "out"), "-o", str(desk / "out/release/report.html"), "--force"])
        == 2
    )
    assert (desk / "out/release/report.html").read_bytes() == before
    assert main(["report", str(tmp_path)]) == 3
    (tmp_path / "out/vault").mkdir(parents=True)
    for damaged in ('{"schema": ', "[]", "{}", '{"schema": 3}'):
        capsys.readouterr()
        (tmp_path / "out/vault/record.json").write_text(damaged)
        assert main(["report", str(tmp_path / "out")]) == 3
        assert capsys.readouterr().err.startswith(
            "clinveil: out/vault/record.json: is damaged, or not a report record"
        )


@pytest.mark.slow
def test_layout_and_numbers_pass_too(desk):
    flags = ["--set", "channel.layout=keep", "--set", "channel.numbers=mask"]
    assert main(release(desk, "layout", *flags)) == 0
    assert main(["verify", str(desk / "layout" / "release")]) == 0


def test_kept_words_are_shown_with_their_cost(desk, tmp_path, monkeypatch):
    monkeypatch.setattr("clinveil.releases.measured.of_release", lambda: [attacks.get("inversion")])
    keep = tmp_path / "keep.txt"
    keep.write_text("the\nand\npatient\n")
    assert (
        main(
            release(
                desk,
                "kept",
                "--label",
                "diagnosis_group",
                *PLAIN,
                "--set",
                f"channel.keep_words={keep}",
            )
        )
        == 0
    )
    manifest = json.loads((desk / "kept/release/manifest.json").read_text())
    assert manifest["tokens"]["kept_words"] > 100
    values = {f["measure"]: f["value"] for f in manifest["findings"]}
    assert values["attack.inversion"] > values["attack.inversion_none_kept"]
    assert manifest["settings"]["channel.keep_words_given"] is True


@pytest.mark.slow
def test_the_first_600_of_mtsamples(real_data, tmp_path):
    import pyarrow.csv as csv

    options = csv.ParseOptions(newlines_in_values=True)
    table = csv.read_csv(real_data("notes/mtsamples.csv.gz"), parse_options=options)
    pq.write_table(table.slice(0, 600), tmp_path / "notes.parquet")
    flags = ["--id", "doc_id", "--text", "transcription", "--label", "doc_type"]
    flags += ["--limits", str(NO_LIMITS)]
    assert (
        main(
            ["release", str(tmp_path / "notes.parquet"), "-o", str(tmp_path / "out"), *FAST, *flags]
        )
        == 0
    )
    assert main(["verify", str(tmp_path / "out" / "release")]) == 0
