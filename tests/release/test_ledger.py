"""The same notes do not leave twice under two keys unnoticed: the ledger, and `clinveil release`
with it.
"""

from __future__ import annotations

import errno
import json
import shlex
import shutil
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.cli import main
from clinveil.core import InputError, UsageError
from clinveil.releases import pipeline
from clinveil.releases.earlier.ledger import (
    DRAWN,
    IN_VAULT,
    NAME,
    Earlier,
    Entry,
    Ledger,
    NoteHashes,
    entry,
    read_entry,
)
from clinveil.releases.measured import attacked
from no_limits import NO_LIMITS


def hashes_of(texts):
    """The hashes of texts, each with an id of its own."""
    return NoteHashes.of([f"id of {text}" for text in texts], texts)


def letters_of(texts):
    return hashes_of(texts).letters


KEYS = ("a" * 64, "b" * 64, "c" * 64)


def notes(n, *, first=0):
    return [
        f"note of a patient with disease {chr(97 + i % 26)}{'x' * (i // 26)}"
        for i in range(first, first + n)
    ]


def left(tmp_path, texts, key=KEYS[0]):
    """A ledger that knows one release of these texts."""
    ledger = Ledger(tmp_path / NAME)
    (tmp_path / "vault").mkdir(exist_ok=True)
    ledger.enter(
        entry(hashes_of(texts), f"2026-11-22-{key[:8]}", key, tmp_path / "vault", "obfuscated"),
        tmp_path / "vault",
    )
    return ledger


def test_the_site_has_one_ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("CLINVEIL_LEDGER", str(tmp_path / "site"))
    assert Ledger.at(None, tmp_path / "elsewhere" / "out").folder == tmp_path / "site"
    assert Ledger.at(tmp_path / "given", tmp_path / "out").folder == tmp_path / "given"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLINVEIL_LEDGER", "~/home")
    monkeypatch.chdir(tmp_path)
    assert Ledger.at(None, tmp_path / "out").folder == tmp_path / "home"
    assert (
        Ledger.at(Path("near"), tmp_path / "out").description
        == f"ledger {tmp_path / 'near'}: new, empty"
    )


def test_the_copy_in_a_vault_stands_in_for_a_lost_ledger(tmp_path):
    ledger = Ledger.at(None, tmp_path / "new")
    assert ledger.description.endswith("new, empty")
    vault = tmp_path / "out" / "vault"
    vault.mkdir(parents=True)
    ledger.enter(entry(hashes_of(notes(20)), "2026-11-22-a", KEYS[0], vault, "obfuscated"), vault)
    assert ledger.description.endswith(": 1 release")
    shutil.rmtree(ledger.folder)
    (earlier,) = Ledger.at(None, tmp_path / "new").earlier(letters_of(notes(20)))
    assert earlier.share == 1 and earlier.entry.commitment == KEYS[0]
    for name, n in (("a", 40), ("z", 30)):  # what was added later, under the same key
        (tmp_path / name / "vault").mkdir(parents=True)
        grown = earlier.entry.grown(hashes_of(notes(n - 20, first=20)), name, vault)
        grown.write(tmp_path / name / "vault" / IN_VAULT)
    (earlier,) = Ledger.at(None, tmp_path / "new").earlier(letters_of(notes(20, first=20)))
    assert earlier.share == 1
    for name in ("a", "z"):
        shutil.rmtree(tmp_path / name)
    (vault / IN_VAULT).write_text("damaged")
    assert Ledger.at(None, tmp_path / "new").earlier(letters_of(notes(20))) == []


def test_a_note_is_its_letters():
    one, *others = letters_of(
        ["Seen on 12/3.\nNo fever", "seen on 14/5: no  FEVER", "Seen. No fevers", None, " 12 ", ""]
    )
    assert one == others[0] != others[1] and len(others) == 2


def test_an_entry_comes_back_and_tells_nothing_of_the_notes(tmp_path):
    ledger = left(tmp_path, [*notes(20), *notes(5)])
    (path,) = ledger.folder.iterdir()
    made = read_entry(path)
    assert (made.run, made.commitment, made.vault) == (
        f"2026-11-22-{KEYS[0][:8]}",
        KEYS[0],
        tmp_path / "vault",
    )
    assert made.notes.size == 20 and not set(made.notes.tolist()) & set(
        letters_of(notes(20)).tolist()
    )
    assert (
        stat.S_IMODE(ledger.folder.stat().st_mode) == 0o700
        and stat.S_IMODE(path.stat().st_mode) == 0o600
    )
    assert read_entry(tmp_path / "vault" / IN_VAULT).notes.tolist() == made.notes.tolist()
    again = entry(hashes_of(notes(20)), made.run, made.commitment, made.vault, made.kind)
    assert not set(again.notes.tolist()) & set(made.notes.tolist()), "two entries share a salt"


@pytest.mark.parametrize(("known", "new", "shared"), [
    (notes(200), notes(200), 1.0),
    (notes(200), notes(200, first=200), None),
    (notes(200), notes(200, first=198), None),  # 1 % at most
    (notes(200), notes(200, first=197), 0.015),
    (notes(20), notes(4000), 1.0),  # a small release within a large one
    (notes(4000), notes(20), 1.0),
    ([*notes(300), *["did not attend"] * 300], [*notes(300, first=300), *["did not attend"] * 300],
        None),
])  # fmt: skip
def test_the_same_notes_under_another_key_are_seen(tmp_path, known, new, shared):
    ledger = left(tmp_path, known)
    found = ledger.earlier(letters_of(new), KEYS[1])
    assert [one.share for one in found] == ([] if shared is None else [pytest.approx(shared)])
    assert ledger.earlier(letters_of(known), KEYS[0]) == [], "a run that goes on has the same key"
    ledger.refuse([])
    if found:
        with pytest.raises(
            UsageError,
            match=(
                f"were released before under another key: release 2026-11-22-{KEYS[0][:8]}"
                " .*--again"
            ),
        ):
            ledger.refuse(found)


def test_the_one_that_shares_most_is_named_first(tmp_path):
    left(tmp_path, notes(40), KEYS[0])
    ledger = left(tmp_path, notes(80), KEYS[1])
    found = ledger.earlier(letters_of(notes(90)), KEYS[2])
    assert [one.shared for one in found] == [80, 40] and found[0].description == "100 %"
    with pytest.raises(UsageError, match=f"{KEYS[1][:8]} and 1 more"):
        ledger.refuse(found)
    assert ledger.earlier(letters_of(notes(3)), KEYS[2])[0].description == "fewer than 11"


def salted(table, salt):
    told = json.loads(table.schema.metadata[b"clinveil"]) | {"salt": salt}
    return table.replace_schema_metadata({"clinveil": json.dumps(told)})


@pytest.mark.parametrize("damage", [
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes()[:-40]),
    lambda path: path.write_text("note"),
    lambda path: pq.write_table(pa.table({"note": [1]}), path),
    lambda path: pq.write_table(pq.read_table(path).rename_columns([*"abcd"]), path),
    lambda path: pq.write_table(salted(pq.read_table(path), "00" * 65), path),
])  # fmt: skip
def test_a_damaged_ledger_vouches_for_nothing(tmp_path, damage):
    ledger = left(tmp_path, notes(5))
    (path,) = ledger.folder.iterdir()
    damage(path)
    with pytest.raises(
        InputError, match=f"{ledger.folder}: {path.name} is damaged or not a ledger entry"
    ):
        ledger.earlier(letters_of(notes(5)), KEYS[1])


def test_a_ledger_that_cannot_be_kept_is_told_before_anything_is_made(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="file: cannot be used as a ledger folder"):
        Ledger.at(tmp_path / "file", tmp_path / "out")
    assert Ledger.at(None, tmp_path / "new" / "out").folder == tmp_path / "new" / NAME


def test_a_folder_of_others_is_no_ledger(tmp_path):
    open_to_all = tmp_path / NAME
    open_to_all.mkdir()
    open_to_all.chmod(0o755)  # whatever the umask
    (open_to_all / "other").touch()
    with pytest.raises(UsageError, match="cannot be used as a ledger folder"):
        Ledger.at(None, tmp_path / "out")
    (open_to_all / "other").rename(open_to_all / ".other")
    for use in (lambda: left(tmp_path, notes(5)), lambda: Ledger.at(None, tmp_path / "out")):
        with pytest.raises(UsageError, match="other users can open this folder"):
            use()


FAST = shlex.split(
    "--set identifiers.language=any --set vectors.epochs=1 --set vectors.dim=8 --workers 1 --quiet "
    f"--set phi=false --limits {shlex.quote(str(NO_LIMITS))}"
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with notes of 60 patients and one finished release of them."""
    folder = tmp_path_factory.mktemp("desk")
    rng = np.random.default_rng(1)
    forms = [f"w{chr(97 + i // 15)}{chr(97 + i % 15)}" for i in range(225)]
    texts = [" ".join(rng.choice(forms, 40)) for _ in range(120)]
    ids = {
        "note_id": [f"n{i}" for i in range(120)],
        "patient_id": [f"p{i // 2}" for i in range(120)],
    }
    pq.write_table(pa.table({**ids, "text": texts}), folder / "notes.parquet")
    assert main(release(folder, "out")) == 0
    return folder


def release(folder, out, *flags):
    return ["release", str(folder / "notes.parquet"), "-o", str(folder / out), *FAST, *flags]


@pytest.fixture
def fresh(desk, tmp_path):
    """A copy of that folder."""
    return shutil.copytree(desk, tmp_path / "desk")


def test_a_release_is_written_down_and_a_second_one_refused(fresh, capsys):
    before = sorted(path.name for path in fresh.iterdir())
    assert before == [NAME, "notes.parquet", "out"]
    (path,) = (fresh / NAME).iterdir()
    manifest = json.loads((fresh / "out/release/manifest.json").read_text())
    assert read_entry(path).commitment == manifest["key_commitment"]
    for flags in (("other",), ("out", "--force")):
        assert main(release(fresh, *flags)) == 2
        said = capsys.readouterr().err
        assert (
            f"{NAME}: 100 % of these notes were released before" in said
            and len(said.splitlines()) == 1
        )
        assert (
            sorted(p.name for p in fresh.iterdir()) == before and (fresh / "out/release").is_dir()
        )
    assert main(release(fresh, "other", "--set", f"ledger={fresh / 'out'}")) == 2  # no place for it


def test_a_site_names_one_ledger_for_all_folders(fresh, monkeypatch, capsys):
    site = fresh / "site"
    one = fresh / "one" / "out"
    shutil.rmtree(fresh / "out")
    (fresh / "c.toml").write_text(f'ledger = "{site}"\n')
    command = [
        word
        for word in release(fresh, "one/out", "--config", str(fresh / "c.toml"))
        if word != "--quiet"
    ]
    assert main(command) == 0
    assert f"\nledger {site}: new, empty\n" in capsys.readouterr().err and one.is_dir()
    monkeypatch.setenv("CLINVEIL_LEDGER", str(site))
    assert main(release(fresh, "two/out")) == 2
    assert "site: 100 % of these notes were released before" in capsys.readouterr().err


def test_a_killed_run_goes_on_and_nothing_of_a_test_seed_counts(fresh):
    run = fresh / "out/vault/state.json"
    assert json.loads(run.read_text())["status"] == "finished"
    run.write_text(run.read_text().replace("finished", "running"))
    assert main(release(fresh, "out")) == 0
    assert len(list((fresh / NAME).iterdir())) == 1
    assert main(release(fresh, "seeded", "--seed", "4")) == 4
    assert len(list((fresh / NAME).iterdir())) == 1


def test_again_releases_it_and_the_report_says_what_both_tell(fresh, monkeypatch):
    monkeypatch.setattr(pipeline, "attacked", attacked)
    assert main(release(fresh, "other", "--again")) == 0
    assert len(list((fresh / NAME).iterdir())) == 2
    for page in (fresh / "other/release/report.html", fresh / "other/vault/report.html"):
        said = page.read_text()
        assert (
            "100 % of the notes were released before under another key" in said
            and "two draws of each word" in said
        )
        assert str(fresh) not in said
    shutil.rmtree(fresh / "out")  # it left all the same
    assert main(release(fresh, "third")) == 2


def test_page_one_names_earlier_releases_instead_of_a_condition_that_does_not_hold(fresh):
    holds = "Other releases of these notes: none in the ledger"
    assert holds in (fresh / "out/release/report.html").read_text()
    command = shlex.split(
        f"release {fresh / 'notes.parquet'} -o {fresh / 'other'} --as deidentified --again"
        " --set identifiers.language=any"  # invented words
    )
    assert main([*command, "--workers", "1", "--quiet"]) == 0
    assert sorted(one.kind for one in Ledger(fresh / NAME).entries()) == [
        "deidentified",
        "obfuscated",
    ]
    assert main(release(fresh, "third", "--again")) == 0
    page = (fresh / "third/release/report.html").read_text()
    assert holds not in page and "(deidentified)" in page and "(obfuscated)" in page
    assert (
        "That release is readable: its holder has 120 of these notes in both forms, as known pairs"
        in page
    )
    assert page.count("two draws of each word") == 1  # of the two obfuscated releases
    readable = (fresh / "other/release/report.html").read_text()
    assert "This release is readable" in readable and "two draws" not in readable


@pytest.mark.parametrize(
    ("kind", "before", "says"),
    [
        ("obfuscated", "obfuscated", "two draws of each word"),
        ("obfuscated", "deidentified", "has 40 of these notes in both forms, as known pairs"),
        ("deidentified", "obfuscated", "This release is readable"),
        ("deidentified", "deidentified", "which words are surrogates"),
        ("synthetic", "deidentified", "adds up"),
        ("obfuscated", "synthetic", "adds up"),
    ],
)
def test_what_two_releases_disclose_depends_on_both_kinds(kind, before, says, tmp_path):
    one = Earlier(entry(hashes_of(notes(40)), "r", KEYS[0], tmp_path, before), 40, 40)
    assert says in one.disclosed(kind)
    assert ("two draws" in one.disclosed(kind)) == (kind == before == DRAWN)
    few = Earlier(entry(hashes_of(notes(4)), "r", KEYS[0], tmp_path, before), 4, 4)
    assert "4 of" not in few.disclosed(kind)


def test_a_ledger_that_cannot_be_written_costs_no_run(fresh, monkeypatch, capsys):
    def full(self, path):
        raise OSError(errno.ENOSPC, "No space left on device")

    shutil.rmtree(fresh / "out")
    shutil.rmtree(fresh / NAME)
    with monkeypatch.context() as patch:
        patch.setattr(Entry, "write", full)
        assert main(release(fresh, "out")) == 5
    assert capsys.readouterr().err.splitlines() == [
        f"clinveil: {fresh / NAME}: the ledger of releases cannot be written (make it writable and"
        " run the same command again)"
    ]
    vectors = (fresh / "out/vault/vectors/matrix.npy").stat().st_mtime_ns
    assert not (fresh / "out/release").exists() and not list(fresh.glob(f"{NAME}/*"))
    assert main(release(fresh, "out")) == 0
    assert (fresh / "out/vault/vectors/matrix.npy").stat().st_mtime_ns == vectors


def test_of_two_runs_side_by_side_one_leaves(fresh, monkeypatch, capsys):
    known = Ledger.earlier
    looks = []

    def late(self, *given):  # the other run ends after this one has looked
        looks.append(1)
        return known(self, *given) if len(looks) > 1 else []

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "earlier", late)
        assert main(release(fresh, "other")) == 4
    said = capsys.readouterr().err
    assert (
        f"{NAME}: 100 % of these notes were released before" in said and len(said.splitlines()) == 1
    )
    assert not (fresh / "other/release").exists() and len(list((fresh / NAME).iterdir())) == 1
    assert main(release(fresh, "other")) == 2
    assert main(release(fresh, "other", "--again")) == 0  # what was made is gone on with


def test_a_link_to_a_missing_ledger_is_refused_at_once(tmp_path, monkeypatch):
    (tmp_path / "site").symlink_to(tmp_path / "nowhere")
    monkeypatch.setenv("CLINVEIL_LEDGER", str(tmp_path / "site"))
    with pytest.raises(UsageError, match="cannot be used as a ledger"):
        Ledger.at(None, tmp_path / "out")
