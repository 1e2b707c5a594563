"""The audit log and the crosswalk of a vault: no word of a note in the one, every word behind a key
in the other.
"""

from __future__ import annotations

import json
import shlex
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.cli import main
from clinveil.core import LABELS, InputError, Key, Span
from clinveil.phi import audit_checks, logs
from clinveil.phi.detection import finder
from clinveil.phi.treatment.audit import note_line
from clinveil.phi.treatment.crosswalk import (
    CrosswalkRow,
    CrosswalkWriter,
    Replacement,
    read_crosswalk,
)
from clinveil.phi.treatment.policy import TreatedSpan, Treatment

CANARIES = {label: f"qz{label.lower().replace('_', '')}xk" for label in LABELS}
TEXT = "Seen: " + "; ".join(CANARIES.values()) + ". Mary Okwuosa of p1 came on Tuesday, 3/5/2019."
ROWS = {
    "note_id": ["n-secret-1", "n-secret-2"],
    "patient_id": ["p1", "p1"],
    "text": [TEXT, "Dr. Mary Okwuosa came on 3/14/2019"],
}


class Canaries:
    name = "canaries"
    labels = frozenset(LABELS)
    examples = ()

    def find(self, note):
        for label, word in CANARIES.items():
            at = note.text.find(word)
            if at >= 0:
                yield Span(at, at + len(word), label, self.name, 0.99, f"saw {word}")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Notes, what became of them, and the vault, with a detector that finds every canary and tells
    of it.
    """
    folder = tmp_path_factory.mktemp("vault")
    pq.write_table(pa.table(ROWS), folder / "notes.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finder, "DETECTORS", (*finder.DETECTORS, Canaries()))
        command = f"deidentify {folder}/notes.parquet -o {folder}/o.parquet --crosswalk --workers 1"
        code = main(shlex.split(command))
    assert code == 0
    return folder


@pytest.fixture
def vault(made, tmp_path):
    shutil.copytree(made / "o.parquet.vault", tmp_path / "v")
    shutil.copy(made / "o.parquet", tmp_path / "o.parquet")
    return tmp_path / "v"


def back(vault, *flags, reason="the patient asked"):
    notes = vault.parent / "o.parquet"
    out = vault.parent / "back.parquet"
    return main(
        [
            "reidentify",
            str(notes),
            "-o",
            str(out),
            "--vault",
            str(vault),
            "--reason",
            reason,
            *flags,
        ]
    )


def texts(path):
    return pq.read_table(path)["text"].to_pylist()


def test_no_canary_leaves_in_notes_log_or_record(made):
    out = " ".join(texts(made / "o.parquet")).casefold()
    names = {"audit-0001.jsonl", "deidentify.json", "README.txt"}
    said = "".join((made / "o.parquet.vault" / name).read_text() for name in names).casefold()
    hidden = (
        (made / "o.parquet.vault")
        .glob("crosswalk-*.bin")
        .__next__()
        .read_bytes()
        .decode("latin-1")
        .casefold()
    )
    for word in (*CANARIES.values(), "okwuosa"):
        assert word not in out + said + hidden
    audit = (made / "o.parquet.vault" / "audit-0001.jsonl").read_text()
    for word in (
        "n-secret-1",
        "o.parquet",
        "notes.parquet",
    ):  # the record says where the notes are: for the review
        assert word not in audit


def test_no_canary_is_said(tmp_path, monkeypatch, capsys):
    pq.write_table(pa.table(ROWS), tmp_path / "notes.parquet")
    monkeypatch.setattr(finder, "DETECTORS", (*finder.DETECTORS, Canaries()))
    for flags in (
        "--phi-profile limited-dataset",
        "--set identifiers.mode=replace --force",
        "--set audit=counts",
    ):
        out = tmp_path / f"{flags.split()[1]}.parquet"
        command = f"deidentify {tmp_path}/notes.parquet -o {out} --workers 1 {flags}"
        assert main(shlex.split(command)) == 0
    said = "".join(capsys.readouterr())
    assert not [word for word in CANARIES.values() if word in said]
    assert "KEPT: the policy (limited-dataset) keeps AGE, CITY, DATE, ZIP unchanged" in said
    assert "KEPT unchanged: 1 CITY, 1 ZIP, 3 DATE, 1 AGE" in said
    record = json.loads(
        (tmp_path / "limited-dataset.parquet.vault" / "deidentify.json").read_text()
    )
    assert record["kept"] == {"CITY": 1, "ZIP": 1, "DATE": 3, "AGE": 1}
    assert (
        len((tmp_path / "audit=counts.parquet.vault" / "audit-0001.jsonl").read_text().splitlines())
        == 2
    )


def test_the_log_says_what_was_done_where(made):
    begin, *notes, end = map(
        json.loads, (made / "o.parquet.vault" / "audit-0001.jsonl").read_text().splitlines()
    )
    assert begin["event"] == "deidentify"
    assert {"version", "code_sha256", "policy_sha256", "input_sha256", "run"} <= begin.keys()
    assert len(notes) == end["notes_written"] == 2
    out = texts(made / "o.parquet")[1]
    moved = 0
    for start, stop, label, detector, why, score, action, length in notes[1]["spans"]:
        assert ROWS["text"][1][start:stop] not in out[start + moved : start + moved + length]
        assert action == ("shift" if label == "DATE" else "surrogate")
        assert detector and isinstance(why, str) and 0 < score <= 1
        moved += length - (stop - start)
    assert len(out) == len(ROWS["text"][1]) + moved
    assert end["spans_by_label"]["DATE"] == 3


def test_a_reason_that_holds_the_text_is_left_out():
    spans = [
        Span(0, 4, "NAME", "a", 1, "rule mary smith"),
        Span(5, 10, "NAME", "a", 1, "title"),
        Span(0, 10, "NAME", "a", 1, "smith"),
    ]
    line = note_line(
        Key.from_seed(1), "n", "Mary Smith", spans, [TreatedSpan("X", Treatment.SURROGATE)] * 3
    )
    assert [span[4] for span in json.loads(line + "}")["spans"]] == ["", "title", ""]


def test_the_chain_holds_over_runs(vault, capsys):
    assert all(check.passed for check in audit_checks(vault))
    assert back(vault) == 0
    assert [path.name for path in logs(vault)] == ["audit-0001.jsonl", "audit-0002.jsonl"]
    assert main(["verify", str(vault)]) == 0
    assert "chain of audit-0002.jsonl" in capsys.readouterr().out


def edit(path, change):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(change(lines)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda lines: [lines[0], lines[1].replace("surrogate", "tag", 1), *lines[2:]],
            "broken at line 2",
        ),
        (lambda lines: [lines[0], *lines[2:]], "broken at line 2"),
        (lambda lines: [lines[0], lines[2], lines[1], lines[3]], "broken at line 2"),
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], "broken at line 3"),
        (lambda lines: lines[:-1], "no end"),
        (lambda lines: [*lines[:-1], lines[-1].rstrip("\n")], "broken at line 4"),
        (lambda lines: [], "no end"),
        (lambda lines: ["{}\n", *lines], "broken at line 1"),
    ],
)
def test_tampering_is_found(vault, change, said):
    edit(vault / "audit-0001.jsonl", change)
    check = audit_checks(vault)[-1]
    assert not check.passed
    assert said in check.detail


def test_a_chain_written_anew_has_no_seal(vault):
    from clinveil.phi.treatment.audit import Chain

    lines = [json.loads(line) for line in (vault / "audit-0001.jsonl").read_text().splitlines()]
    with (vault / "audit-0001.jsonl").open("w") as file:
        chain = Chain(file)
        for line in (lines[0], lines[2], lines[3]):
            chain.write({key: value for key, value in line.items() if key != "chain"})
    check = audit_checks(vault)[-1]
    assert not check.passed
    assert "the seal does not belong to this vault's key" in check.detail


def test_a_run_taken_out_is_found(vault, capsys):
    assert back(vault) == 0
    (vault / "audit-0001.jsonl").unlink()
    assert main(["verify", str(vault)]) == 4
    assert "run 1 is missing" in capsys.readouterr().out


def test_there_and_back(vault):
    assert back(vault) == 0
    assert texts(vault.parent / "back.parquet") == ROWS["text"]
    lines = [json.loads(line) for line in (vault / "audit-0002.jsonl").read_text().splitlines()]
    assert lines[0]["event"] == "reidentify"
    assert lines[0]["reason"] == "the patient asked"
    assert len(lines) == 4  # two notes between


def test_what_a_killed_run_left_of_the_log_is_removed(vault):
    left = vault / ".audit-0001.jsonl.01234567.part"
    left.mkdir(mode=0o700)
    assert back(vault) == 0
    assert not left.exists()


@pytest.mark.parametrize("mode", ["remove", "tag"])
def test_there_and_back_in_other_modes(tmp_path, mode):
    pq.write_table(pa.table(ROWS), tmp_path / "n.parquet")
    out = tmp_path / "o.parquet"
    home = tmp_path / "back.parquet"
    flags = ["--set", f"identifiers.mode={mode}", "--crosswalk", "--workers", "1"]
    assert main(["deidentify", str(tmp_path / "n.parquet"), "-o", str(out), *flags]) == 0
    assert "Okwuosa" not in " ".join(texts(out))
    line = ["reidentify", str(out), "-o", str(home), "--vault", f"{out}.vault", "--reason", "r"]
    assert main(line) == 0
    assert texts(home) == ROWS["text"]


def test_one_note_alone(vault):
    assert back(vault, "--set", "only_note=n-secret-2") == 0
    assert texts(vault.parent / "back.parquet") == ROWS["text"][1:]


def test_a_note_that_was_changed_is_left_out(vault, capsys):
    table = pq.read_table(vault.parent / "o.parquet")
    changed = [table["text"][0].as_py() + "!", table["text"][1].as_py()]
    pq.write_table(
        table.set_column(table.column_names.index("text"), "text", [changed]),
        vault.parent / "o.parquet",
    )
    assert back(vault) == 0
    assert texts(vault.parent / "back.parquet") == ROWS["text"][1:]
    assert "1 notes left out" in capsys.readouterr().err


def lost(vault):
    (vault / "key.bin").unlink()


def wrong(vault):
    (vault / "key.bin").write_bytes(b"x" * 32)


def foreign(vault):
    pq.write_table(pa.table({**ROWS, "text": ["another", "run"]}), vault.parent / "o.parquet")


def none(vault):
    for path in vault.glob("crosswalk-*"):
        path.unlink()


def cut(vault):
    path = next(vault.glob("crosswalk-*"))
    path.write_bytes(path.read_bytes()[:-40])


def no_crosswalk(vault):
    next(vault.glob("crosswalk-*")).write_bytes(b"PAR1")


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lost, "contains no key"),
        (wrong, "was written under another key"),
        (foreign, "belong to another run or were changed later"),
        (none, "contains no crosswalk"),
        (cut, "is damaged or truncated"),
        (no_crosswalk, "is not a clinveil crosswalk"),
    ],
)
def test_what_does_not_fit_is_one_line(vault, capsys, harm, said):
    harm(vault)
    before = sorted(path.name for path in vault.iterdir())
    assert back(vault) == 3
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not (vault.parent / "back.parquet").exists()
    assert sorted(path.name for path in vault.iterdir()) == before


def test_no_reason_is_refused(vault):
    assert back(vault, reason=" ") == 2


def test_a_key_kept_elsewhere(vault):
    (vault / "key.bin").rename(vault.parent / "k.bin")
    assert back(vault, "--key", str(vault.parent / "k.bin")) == 0
    assert texts(vault.parent / "back.parquet") == ROWS["text"]


def test_chunks_know_their_place(tmp_path):
    key = Key.from_seed(3)
    rows = [
        CrosswalkRow(f"n{i}", "p", "d", 5, (Replacement(0, "NAME", "Ä", "B"),)) for i in range(3)
    ]
    path = tmp_path / "crosswalk.bin"
    with path.open("wb") as file:
        writer = CrosswalkWriter(file, key, "run")
        ends = [file.tell()]
        for row in rows:
            writer.write([row])
            ends.append(file.tell())
        writer.close()
    assert list(read_crosswalk(path, key)) == rows
    whole = path.read_bytes()
    head, one, two = (whole[a:b] for a, b in zip([0, *ends], ends[:3], strict=False))
    for broken in (
        head + two + one + whole[ends[2] :],
        head + one + whole[ends[2] :],
        whole[: ends[3]],
    ):
        path.write_bytes(broken)
        with pytest.raises(InputError, match="damaged or truncated"):
            list(read_crosswalk(path, key))


def test_detectors_that_always_raise_fail_the_gate(tmp_path, monkeypatch, capsys):
    from clinveil.phi.detection import finder

    def burst(text, spans):
        raise ValueError(text)

    monkeypatch.setattr(finder, "resolve", burst)
    pq.write_table(pa.table(ROWS), tmp_path / "n.parquet")
    for out in ("o.parquet", "o.csv", "folder"):
        assert (
            main(
                shlex.split(f"deidentify {tmp_path / 'n.parquet'} -o {tmp_path / out} --workers 1")
            )
            == 4
        )
    assert "failed on 2 of 2 notes" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["n.parquet"]
