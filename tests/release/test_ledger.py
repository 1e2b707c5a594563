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
from ledger_cases import KEYS, NAME, hashes_of, left, notes, release, released_once

from clinveil.cli import main
from clinveil.core import InputError, UsageError
from clinveil.releases import pipeline
from clinveil.releases.earlier.ledger import (
    DRAWN,
    IN_VAULT,
    Earlier,
    Entry,
    Ledger,
    entry,
    read_entry,
    user_folder,
)
from clinveil.releases.earlier.note_hashes import NoteHashes
from clinveil.releases.measured import attacked


def test_the_ledger_is_that_of_the_setting_or_the_site_or_the_user(tmp_path, monkeypatch):
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
    monkeypatch.delenv("CLINVEIL_LEDGER")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for out in ("out", "other/out"):  # another OUT is no way around it
        found = Ledger.at(None, tmp_path / out).folder
        assert found == tmp_path / ".local/share/clinveil/ledger"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert user_folder() == tmp_path / "data/clinveil/ledger"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")  # as the XDG specification says
    assert user_folder() == tmp_path / ".local/share/clinveil/ledger"


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("darwin", "Library/Application Support/clinveil/ledger"),
        ("win32", "AppData/Local/clinveil/ledger"),
    ],
)
def test_the_usual_folders_of_other_systems(platform, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr("clinveil.releases.earlier.ledger.sys.platform", platform)
    assert user_folder() == tmp_path / folder


def test_an_unwritable_data_folder_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv("CLINVEIL_LEDGER")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UsageError, match=r"cannot be used as a ledger folder .*CLINVEIL_LEDGER"):
        Ledger.at(None, tmp_path / "out")


def test_the_copy_in_a_vault_stands_in_for_a_lost_ledger(tmp_path):
    assert not Ledger.at(None, tmp_path / "new").folder.exists()
    ledger = Ledger.at(None, tmp_path / "new")
    assert ledger.description.endswith("new, empty")
    vault = tmp_path / "out" / "vault"
    vault.mkdir(parents=True)
    ledger.enter(entry(hashes_of(notes(20)), "2026-11-22-a", KEYS[0], vault, "obfuscated"), vault)
    assert ledger.description.endswith(": 1 release")
    shutil.rmtree(ledger.folder)
    (earlier,) = Ledger.at(None, tmp_path / "new").earlier(hashes_of(notes(20)))
    assert earlier.share == 1 and earlier.entry.commitment == KEYS[0]
    for name, n in (("a", 40), ("z", 30)):  # what was added later, under the same key
        (tmp_path / name / "vault").mkdir(parents=True)
        grown = earlier.entry.grown(hashes_of(notes(n - 20, first=20)), name, vault)
        grown.write(tmp_path / name / "vault" / IN_VAULT)
    (earlier,) = Ledger.at(None, tmp_path / "new").earlier(hashes_of(notes(20, first=20)))
    assert earlier.share == 1
    for name in ("a", "z"):
        shutil.rmtree(tmp_path / name)
    (vault / IN_VAULT).write_text("damaged")
    assert Ledger.at(None, tmp_path / "new").earlier(hashes_of(notes(20))) == []


def test_a_note_is_its_letters():
    one, *others = hashes_of(
        ["Seen on 12/3.\nNo fever", "seen on 14/5: no  FEVER", "Seen. No fevers", None, " 12 ", ""]
    ).letters
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
        hashes_of(notes(20)).letters.tolist()
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
    found = ledger.earlier(hashes_of(new), KEYS[1])
    assert [one.share for one in found] == ([] if shared is None else [pytest.approx(shared)])
    assert ledger.earlier(hashes_of(known), KEYS[0]) == [], "a run that goes on has the same key"
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
    found = ledger.earlier(hashes_of(notes(90)), KEYS[2])
    assert [one.shared for one in found] == [80, 40] and found[0].description == "100 %"
    with pytest.raises(UsageError, match=f"{KEYS[1][:8]} and 1 more"):
        ledger.refuse(found)
    assert ledger.earlier(hashes_of(notes(3)), KEYS[2])[0].description == "fewer than 11"


def salted(table, salt):
    told = json.loads(table.schema.metadata[b"clinveil"]) | {"salt": salt}
    return table.replace_schema_metadata({"clinveil": json.dumps(told)})


@pytest.mark.parametrize("damage", [
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes()[:-40]),
    lambda path: path.write_text("note"),
    lambda path: pq.write_table(pa.table({"note": [1]}), path),
    lambda path: pq.write_table(pq.read_table(path).rename_columns([*"abcde"]), path),
    lambda path: pq.write_table(salted(pq.read_table(path), "00" * 65), path),
])  # fmt: skip
def test_a_damaged_ledger_vouches_for_nothing(tmp_path, damage):
    ledger = left(tmp_path, notes(5))
    (path,) = ledger.folder.iterdir()
    damage(path)
    with pytest.raises(
        InputError, match=f"{ledger.folder}: {path.name} is damaged or not a ledger entry"
    ):
        ledger.earlier(hashes_of(notes(5)), KEYS[1])


def test_a_ledger_that_cannot_be_kept_is_told_before_anything_is_made(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="file: cannot be used as a ledger folder"):
        Ledger.at(tmp_path / "file", tmp_path / "out")


def test_a_folder_of_others_is_no_ledger(tmp_path):
    open_to_all = tmp_path / NAME
    open_to_all.mkdir()
    open_to_all.chmod(0o755)  # whatever the umask
    (open_to_all / "other").touch()
    with pytest.raises(UsageError, match="cannot be used as a ledger folder"):
        Ledger.at(open_to_all, tmp_path / "out")
    (open_to_all / "other").rename(open_to_all / ".other")
    for use in (lambda: left(tmp_path, notes(5)), lambda: Ledger.at(open_to_all, tmp_path / "out")):
        with pytest.raises(UsageError, match="other users can open this folder"):
            use()


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with notes of 60 patients and one finished release of them."""
    return released_once(tmp_path_factory.mktemp("desk"))


@pytest.fixture
def fresh(desk, tmp_path, monkeypatch):
    """A copy of that folder, with its ledger."""
    monkeypatch.setenv("CLINVEIL_LEDGER", str(tmp_path / "desk" / NAME))
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
    known = Ledger.overlapping
    looks = []

    def late(self, *given):  # the other run ends after this one has looked
        looks.append(1)
        return known(self, *given) if len(looks) > 1 else []

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "overlapping", late)
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


TEMPLATES = [
    f"the patient was seen in clinic {chr(97 + i)} and did not report any change" for i in range(26)
]


def corpus_of(first, n, templates, seed):
    """Texts and patients of notes of which a share are templates, each for several patients."""
    rng = np.random.default_rng(seed)
    own = notes(n - len(templates), first=first)
    texts = [*own, *templates]
    patients = [f"p{seed}-{number}" for number in rng.integers(0, 10**9, len(texts))]
    return NoteHashes.of([f"{seed} {i}" for i in range(len(texts))], texts, patients)


@pytest.mark.parametrize("side", ["both", "before", "now"])
def test_templates_do_not_count_as_released_before(tmp_path, side):
    """30 % of the notes of two unrelated releases are the same templates.

    It suffices that one of the releases has each of them for several patients.
    """
    often = [TEMPLATES[i % 26] for i in range(300)]
    once = TEMPLATES
    before = corpus_of(0, 1_000, often if side != "now" else once, seed=1)
    now = corpus_of(2_000, 1_000, often if side != "before" else once, seed=2)
    ledger = Ledger(tmp_path / NAME)
    (tmp_path / "vault").mkdir()
    ledger.enter(entry(before, "r", KEYS[0], tmp_path / "vault", "obfuscated"), tmp_path / "vault")
    shared = np.intersect1d(now.letters, before.letters).size
    assert shared > 0.02 * np.unique(now.letters).size, "by distinct texts they were refused"
    assert ledger.earlier(now, KEYS[1]) == []
    (again,) = ledger.earlier(corpus_of(0, 1_000, often, seed=3), KEYS[1])
    assert again.share == 1.0, "the same notes are refused all the same"


def test_copies_of_a_note_of_one_patient_are_evidence():
    texts = notes(5) * 2
    of_one = NoteHashes.of([f"n{i}" for i in range(10)], texts, [f"p{i % 5}" for i in range(10)])
    assert of_one.specific.all()
    of_two = NoteHashes.of(
        [f"n{i}" for i in range(30)], [*texts, *notes(20, first=5)], [f"p{i}" for i in range(30)]
    )
    assert of_two.specific.tolist() == [False] * 10 + [True] * 20


def test_short_notes_are_evidence_only_if_there_is_nothing_else():
    short = [f"seen {chr(97 + i)}" for i in range(20)]
    assert hashes_of(short).specific.all()
    assert hashes_of([*short, *notes(20)]).specific.tolist() == [False] * 20 + [True] * 20


def test_later_notes_with_templates_may_follow_under_the_same_key(tmp_path):
    often = [TEMPLATES[i % 26] for i in range(300)]
    may = corpus_of(0, 1_000, often, seed=1)
    june = corpus_of(2_000, 1_000, often, seed=2)
    made = entry(may, "r", KEYS[0], tmp_path, "obfuscated")
    made.refuse(june, again=False)
    renamed = corpus_of(0, 1_000, often, seed=3)
    with pytest.raises(UsageError, match="100 % of these notes were released before under other"):
        made.refuse(renamed, again=False)


def test_an_entry_of_the_first_version_counts_all_its_notes(tmp_path):
    ledger = left(tmp_path, notes(20))
    (path,) = ledger.folder.iterdir()
    table = pq.read_table(path)
    stored = json.loads(table.schema.metadata[b"clinveil"])
    stored["schema"] = "clinveil.ledger/1"
    del stored["withdrawn"]
    old = table.drop_columns(["specific"])
    pq.write_table(old.replace_schema_metadata({"clinveil": json.dumps(stored)}), path)
    (earlier,) = ledger.earlier(hashes_of(notes(20)), KEYS[1])
    assert earlier.share == 1.0
