"""`clinveil release` as its users call it: one run that is looked at from many sides, and the runs that must fail."""

from __future__ import annotations

import json
import re
import shutil
import stat
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

from clinveil.cli.main import main
from clinveil.core.finding import read_findings
from clinveil.core.tokens import words
from clinveil.corpus.demo.stream import demo_notes
from clinveil.report.edition import outward_finding

# Many releases of the same notes lie beside one another here: --again.
FAST = ["--epochs", "1", "--window", "5", "--dim", "16", "--workers", "1", "--quiet", "--again"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with demo notes and one finished release of them."""
    folder = tmp_path_factory.mktemp("desk")
    assert main(["generate", "-o", str(folder / "demo"), "--patients", "70", "--seed", "3", "--quiet"]) == 0
    assert main(release(folder, "out", "--label", "diagnosis_group", "--keep", "note_type")) == 0
    return folder


def release(folder, out, *flags, notes="demo/notes.parquet"):
    patients = ["--patients", str(folder / "demo" / "patients.parquet")] if (folder / "demo").exists() else []
    return ["release", str(folder / notes), "-o", str(folder / out), *patients, *FAST, *flags]


def copied(desk, tmp_path):
    shutil.copytree(desk / "out" / "release", tmp_path / "release")
    return tmp_path / "release"


def test_two_trees(desk):
    names = {p.name for p in (desk / "out" / "release").iterdir()}
    assert names == {"notes.parquet", "README.md", "manifest.json", "report.html", "SHA256SUMS"}
    vault = desk / "out" / "vault"
    assert stat.S_IMODE(vault.stat().st_mode) == 0o700
    for path in vault.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path.name
    assert {"key.bin", "vectors", "neighbours", "channel", "crosswalk.parquet", "alignment.parquet", "report.html"} <= {
        p.name for p in vault.iterdir()
    }
    assert not (vault / "work").exists()


def test_rows_columns_and_order(desk):
    source, released = (pq.read_table(p) for p in (desk / "demo/notes.parquet", desk / "out/release/notes.parquet"))
    kept = [n for n in source.column_names if n != "code"]
    assert released.column_names == kept
    assert not set(released["note_id"].to_pylist()) & set(source["note_id"].to_pylist())
    crosswalk = pq.read_table(desk / "out/vault/crosswalk.parquet")
    assert crosswalk["source_note_id"].to_pylist() == source["note_id"].to_pylist()
    pairs = set(zip(source["patient_id"].to_pylist(), crosswalk["patient_id"].to_pylist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) == 70
    groups = dict(zip(crosswalk["note_id"].to_pylist(), source["diagnosis_group"].to_pylist(), strict=True))
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
    assert json.loads((desk / "out/release/manifest.json").read_text())["settings"]["order"] == "keyed"
    assert "order of the source" not in (desk / "out/release/report.html").read_text()


def test_permuted_rows_give_the_same_ids_in_the_same_order(desk, tmp_path):
    notes = pq.read_table(desk / "demo/notes.parquet")
    pq.write_table(notes.take(np.random.default_rng(1).permutation(len(notes))), tmp_path / "permuted.parquet")
    found = []
    for path, flags in ((desk / "demo/notes.parquet", ["--workers", "2"]), (tmp_path / "permuted.parquet", [])):
        out = tmp_path / path.stem
        assert main(["release", str(path), "-o", str(out), *FAST, "--seed", "5", "--no-phi", *flags]) == 4
        found.append(pq.read_table(out / "vault/refused/notes.parquet")["note_id"].to_pylist())
    assert found[0] == found[1] == sorted(found[0])


def test_the_order_of_the_source_is_kept_on_request_and_warned_of(desk, tmp_path):
    notes = str(desk / "demo/notes.parquet")
    assert main(["release", notes, "-o", str(tmp_path / "o"), *FAST, "--no-phi", "--order", "source"]) == 0
    crosswalk = pq.read_table(tmp_path / "o/vault/crosswalk.parquet")["note_id"].to_pylist()
    assert pq.read_table(tmp_path / "o/release/notes.parquet")["note_id"].to_pylist() == crosswalk
    assert "Rows stand in the order of the source" in (tmp_path / "o/release/report.html").read_text()


def test_released_text_is_plain_words_of_enough_patients(desk):
    texts = pq.read_table(desk / "out/release/notes.parquet")["text"].to_pylist()
    assert all(re.fullmatch(r"(?:\w+(?: \w+)*)?", text) and not re.search(r"\d", text) for text in texts)
    users: dict[str, set[str]] = {}
    channel = set(" ".join(texts).split())
    source = pq.read_table(desk / "demo/notes.parquet", columns=["patient_id", "text"]).to_pylist()
    for row in source:
        for word in set(words(row["text"])) & channel:
            users.setdefault(word, set()).add(row["patient_id"])
    # Surrogates are words of the protected notes, not of these; every source word that came out has enough users.
    rare = {w for w, patients in users.items() if len(patients) < 3}
    assert len(rare) < 0.05 * len(channel)


def test_one_draw_a_patient_and_word(desk):
    source = pq.read_table(desk / "out/vault/alignment.parquet")
    assert source.num_rows == pq.read_table(desk / "out/release/notes.parquet").num_rows


def test_findings_and_manifests_agree(desk):
    findings = read_findings(desk / "out/vault/findings.json")
    public = json.loads((desk / "out/release/manifest.json").read_text())
    assert public["findings"] == [outward_finding(f) for f in findings]
    inside = json.loads((desk / "out/vault/manifest.json").read_text())
    assert inside["findings"] == [f.as_dict() for f in findings]
    small = {f.measure for f in findings if f.unit in ("notes", "patients") and f.count in range(1, 11)}
    assert small, "the demo has no small count to hide"
    assert all(f["count"] is None and f["value"] is None for f in public["findings"] if f["measure"] in small)
    assert {
        "attack.inversion",
        "attack.own_name",
        "attack.name_to_name",
        "attack.six_grams",
        "utility.classification",
    } <= {f.measure for f in findings}
    assert public["accounting"]["read"] == public["accounting"]["written"] + sum(
        public["accounting"]["skipped"].values()
    )
    assert "private" not in public
    assert "training" not in json.dumps(public.get("seeds", {}))
    assert "source_sha256" in json.loads((desk / "out/vault/manifest.json").read_text())["private"]


def test_nothing_released_names_a_place_or_a_source_id(desk):
    ids = set(pq.read_table(desk / "demo/notes.parquet", columns=["note_id"])["note_id"].to_pylist())
    for path in (desk / "out" / "release").iterdir():
        if path.suffix != ".parquet":
            text = path.read_text(encoding="utf-8")
            assert str(desk) not in text and "/tmp" not in text and "/home" not in text and "/root" not in text
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
    before = (desk / "out/release/SHA256SUMS").read_text()
    assert main(release(desk, "out", "--force", "--min-patients", "71")) == 3
    assert (desk / "out/release/SHA256SUMS").read_text() == before


def test_a_test_seed_is_refused_and_repeats(desk, capsys):
    for out in ("one", "two"):
        assert main(release(desk, out, "--seed", "5")) == 4
    said = capsys.readouterr()
    assert "no test seed" in said.out
    assert not (desk / "one" / "release").exists()
    one, two = ((desk / o / "vault/refused/notes.parquet").read_bytes() for o in ("one", "two"))
    assert one == two


def test_a_test_seed_is_said_on_stderr(desk, capsys):
    flags = [f for f in release(desk, "two", "--seed", "5", "--force") if f != "--quiet"]
    assert main(flags) == 4
    assert "TEST SEED: not for release" in capsys.readouterr().err
    assert "TEST SEED" in (desk / "two/vault/refused/report.html").read_text()


def test_dry_run_makes_nothing(desk, capsys):
    assert main([*release(desk, "nothing"), "--dry-run"]) == 0
    assert not (desk / "nothing").exists()
    assert "in all about" in capsys.readouterr().out


def test_an_interrupted_run_goes_on_with_the_vectors_it_has(desk, monkeypatch, capsys):
    from clinveil.releases import pipeline as run

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "write_notes", stop)
        assert main(release(desk, "again")) == 130
    vault = desk / "again" / "vault"
    assert not (desk / "again" / "release").exists() and not (vault / "work").exists()
    vectors = (vault / "vectors" / "matrix.npy").stat().st_mtime_ns
    assert main(release(desk, "again")) == 0
    assert (vault / "vectors" / "matrix.npy").stat().st_mtime_ns == vectors
    assert main(["verify", str(desk / "again" / "release")]) == 0


def test_a_full_disk_is_said_and_can_be_resumed(desk, monkeypatch, capsys):
    from clinveil.releases import pipeline as run

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(run, "write_notes", full)
        assert main(release(desk, "full")) == 5
    assert "no space" in capsys.readouterr().err
    assert main(release(desk, "full")) == 0


def test_a_gate_that_fails_leaves_no_release(desk, monkeypatch, capsys):
    """A channel that maps words to themselves, slipped under the run, is caught by reading the release back."""
    from dataclasses import replace

    import numpy as np

    from clinveil.releases import pipeline as run

    def lying(job, vectors, counts):
        channel = run_channel(job, vectors, counts)
        n = len(channel.words)
        everything = np.ones(n, dtype=bool)
        identity = replace(
            channel,
            indptr=np.arange(n + 2),
            indices=np.append(np.arange(n), 0).astype(np.int32),
            probabilities=np.ones(n + 1),
            eligible=everything,
        )
        object.__setattr__(identity, "eligible", channel.eligible)
        return identity

    run_channel = run.channel_of
    monkeypatch.setattr(run, "channel_of", lying)
    assert main(release(desk, "caught")) == 4
    assert not (desk / "caught" / "release").exists()
    assert "rare-word floor" in capsys.readouterr().out
    assert (desk / "caught/vault/report.html").exists()


def test_report_again(desk, tmp_path):
    target = tmp_path / "r.html"
    assert main(["report", str(desk / "out"), "-o", str(target), "--edition", "external"]) == 0
    assert target.read_text() == (desk / "out/release/report.html").read_text()
    assert main(["report", str(desk / "out")]) == 0
    assert main(["report", str(tmp_path)]) == 3


@pytest.mark.parametrize("flags", [["--layout", "keep", "--numbers", "mask"], ["--no-phi", "--memo", "occurrence"]])
@pytest.mark.slow
def test_other_settings_pass_too(desk, tmp_path, flags):
    out = f"other{flags[0]}{flags[-1]}"
    assert main(release(desk, out, *flags)) == 0
    assert main(["verify", str(desk / out / "release")]) == 0


def test_words_in_another_order_twice_or_left_out_pass(desk, tmp_path):
    """The release is read back word by word, and every word stands beside its own source in the report."""
    drop = tmp_path / "drop.txt"
    drop.write_text("pain\nzyzzyva\n")
    flags = ["--shuffle", "window", "--shuffle-sentences", "--vary-length", "0.4", "--memo", "rare", "--memo-names"]
    flags += ["--drop-stop-words", "--drop-words", str(drop), "--layout", "keep"]
    assert main(release(desk, "ordered", *flags)) == 0
    assert main(["verify", str(desk / "ordered" / "release")]) == 0
    manifest = json.loads((desk / "ordered/release/manifest.json").read_text())
    tokens, settings = manifest["tokens"], manifest["settings"]
    assert tokens["dropped"] > tokens["thinned"] > 100 and tokens["doubled"] > 100
    assert (settings["shuffle"], settings["vary_length"], settings["memo"]) == ("window", 0.4, "rare")
    assert settings["drop_words_given"] is True
    scopes = np.load(desk / "ordered/vault/channel/scopes.npy")
    assert {0, 2, 3} == set(scopes.tolist())


def test_unknown_words_are_replaced_or_dropped_never_passed(desk):
    for unknown in ("pool", "drop"):
        out = f"unknown-{unknown}"
        assert main(release(desk, out, "--min-count", "4", "--unknown", unknown)) == 0
        tokens = json.loads((desk / out / "release/manifest.json").read_text())["tokens"]
        assert tokens["unknown"] > 0
        assert (tokens["dropped"] > 0) == (unknown == "drop")


def test_kept_words_are_shown_with_their_cost(desk, tmp_path):
    keep = tmp_path / "keep.txt"
    keep.write_text("the\nand\npatient\n")
    assert main(release(desk, "kept", "--label", "diagnosis_group", "--keep-words", str(keep))) == 0
    manifest = json.loads((desk / "kept/release/manifest.json").read_text())
    assert manifest["tokens"]["kept_words"] > 100
    values = {f["measure"]: f["value"] for f in manifest["findings"]}
    assert values["attack.inversion"] > values["attack.inversion_none_kept"]
    assert manifest["settings"]["keep_words_given"] is True
    # Another key, the same notes: the same split and the same original score, to the last digit.
    other = json.loads((desk / "out/release/manifest.json").read_text())
    assert other["key_commitment"] != manifest["key_commitment"]
    ours, theirs = (
        [(f["measure"], f["value"]) for f in run["findings"] if f["detail"].get("side") == "original"]
        for run in (manifest, other)
    )
    assert ours == theirs != []


def test_every_format_comes_back_in_its_own(desk, tmp_path):
    table = pa.Table.from_batches(demo_notes(60, 4))
    from clinveil.corpus.corpus import Columns
    from clinveil.corpus.write import write_corpus

    names = Columns(
        "text",
        "note_id",
        "patient_id",
        ("diagnosis_group",),
        (),
        (),
        ("note_id", "patient_id", "text", "diagnosis_group"),
    )
    for suffix in (".csv.gz", ".jsonl"):
        notes = tmp_path / f"n{suffix}"
        rows = table.select(["note_id", "patient_id", "text", "diagnosis_group"])
        write_corpus(rows.to_batches(), notes, names, suffix)
        flags = ["--keep", "diagnosis_group"]
        assert main(["release", str(notes), "-o", str(tmp_path / f"o{suffix}"), *FAST, *flags]) == 0
        assert (tmp_path / f"o{suffix}" / "release" / f"notes{suffix}").exists()
        assert main(["verify", str(tmp_path / f"o{suffix}" / "release")]) == 0


def test_a_folder_of_texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for batch in demo_notes(60, 4):
        for note_id, text in zip(batch["note_id"].to_pylist(), batch["text"].to_pylist(), strict=True):
            (folder / f"{note_id}.txt").write_text(text, encoding="utf-8")
    assert main(["release", str(folder), "-o", str(tmp_path / "out"), *FAST]) == 0
    assert (tmp_path / "out/release/notes").is_dir()
    assert len(list((tmp_path / "out/release/notes").iterdir())) == len(list(folder.iterdir()))
    assert main(["verify", str(tmp_path / "out" / "release")]) == 0


def test_few_patients_are_refused(tmp_path, capsys):
    pq.write_table(pa.Table.from_batches(demo_notes(49, 4)), tmp_path / "n.parquet")
    assert main(["release", str(tmp_path / "n.parquet"), "-o", str(tmp_path / "out"), *FAST]) == 3
    assert "--allow-small" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_null_and_empty_texts_are_accounted_for(tmp_path, capsys):
    table = pa.Table.from_batches(demo_notes(60, 4)).select(["note_id", "patient_id", "text"])
    extra = pa.table({"note_id": ["e", "x"], "patient_id": ["a", "b"], "text": ["", None]}, schema=table.schema)
    pq.write_table(pa.concat_tables([table, extra]), tmp_path / "n.parquet")
    assert main(["release", str(tmp_path / "n.parquet"), "-o", str(tmp_path / "out"), *FAST]) == 0
    inside = json.loads((tmp_path / "out/vault/manifest.json").read_text())["accounting"]
    assert inside == {"read": table.num_rows + 2, "written": table.num_rows + 1, "skipped": {"null text": 1}}
    outside = json.loads((tmp_path / "out/release/manifest.json").read_text())["accounting"]
    assert outside == {"read": None, "written": table.num_rows + 1, "skipped": {"null text": "<11"}}


def test_too_many_null_texts_fail_the_gate(tmp_path):
    table = pa.Table.from_batches(demo_notes(60, 4)).select(["note_id", "patient_id", "text"])
    n = table.num_rows // 20
    extra = pa.table(
        {"note_id": [f"x{i}" for i in range(n)], "patient_id": ["b"] * n, "text": [None] * n}, schema=table.schema
    )
    pq.write_table(pa.concat_tables([table, extra]), tmp_path / "n.parquet")
    assert main(["release", str(tmp_path / "n.parquet"), "-o", str(tmp_path / "out"), *FAST]) == 4
    assert not (tmp_path / "out" / "release").exists()


@pytest.mark.slow
def test_the_first_600_of_mtsamples(real_data, tmp_path):
    import pyarrow.csv as csv

    options = csv.ParseOptions(newlines_in_values=True)
    table = csv.read_csv(real_data("notes/mtsamples.csv.gz"), parse_options=options)
    pq.write_table(table.slice(0, 600), tmp_path / "notes.parquet")
    flags = ["--id", "doc_id", "--text", "transcription", "--label", "doc_type"]
    assert main(["release", str(tmp_path / "notes.parquet"), "-o", str(tmp_path / "out"), *FAST, *flags]) == 0
    assert main(["verify", str(tmp_path / "out" / "release")]) == 0
