"""`clinveil release --add`: later notes under the key, channel and ids of a release, of which
nothing changes.
"""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from clinveil.channel.files import load_channel
from clinveil.cli.main import main
from clinveil.core.errors import InputError, UsageError
from clinveil.core.runfolder import fingerprint, run_folder
from clinveil.core.tokens import words
from clinveil.corpus.corpus import rows
from clinveil.corpus.held_out import HeldOutPatients
from clinveil.corpus.open import open_corpus
from clinveil.releases.attacked import attacked_release
from clinveil.releases.context import ReleaseContext
from clinveil.releases.earlier.ledger import NAME, Ledger, read_entry
from clinveil.releases.earlier.parent import MAY_DIFFER, ParentRelease
from clinveil.releases.outcome import KIND, Places
from clinveil.releases.preflight import preflight
from clinveil.releases.producers._channel import channel_of, vectors_of
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.treatment import treated
from clinveil.releases.writing import write_notes
from clinveil.report.record import from_json
from clinveil.vectors.count import count_words

MEASURES = ("uniqueness", "identifiers")

FAST = [
    "--set",
    "epochs=1",
    "--set",
    "language=any",
    "--set",
    "dim=8",
    "--set",
    "phi=false",
    "--set",
    "max_names=1",
    "--set",
    "max_linkage=1",
]
QUIET = ["--workers", "1", "--quiet"]
OUTS = ("out", "out2", "out3")
FEEDS = {"out": 80, "out2": 100, "out3": 120}  # each holds all notes until its day
CHANGED = "n7"  # at the second day it says more than at the first


def text(rng, new=0):
    """A note of 40 words, some of which no note of the first day has."""
    drawn = [f"w{chr(97 + i)}" for i in rng.integers(0, 26, 40)]
    return " ".join([*drawn, *(f"later{chr(97 + i)}" for i in range(new))])


def feed(day, *, first=0):
    """The notes until a day: two of each of 40 patients at first, then some more of them and of new
    ones.
    """
    rng = np.random.default_rng(1)
    made = [
        (f"n{i}", f"p{i // 2 if i < 90 else i % 60}", text(rng, new=3 * (i >= 80)))
        for i in range(120)
    ]
    if day != "out":
        made = [
            (*ids, f"{said} addendum wb wc" if ids[0] == CHANGED else said) for *ids, said in made
        ]
    columns = zip(*made[first : FEEDS[day]], strict=True)
    table = pa.table(dict(zip(("note_id", "patient_id", "text"), map(list, columns), strict=True)))
    kinds = ["a", "b"] * 60
    return table.append_column("kind", pa.array(kinds[first : FEEDS[day]]))


def command(desk, day, *flags, out=None):
    where = [] if out == "" else ["-o", str(desk / (out or day))]  # without it, the plan is printed
    return ["release", str(desk / f"{day}.parquet"), *where, *QUIET, *flags]


def onto(desk, out):
    return ["--add", "--vault", str(desk / out / "vault")]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Three days, each added to the one before; `before` has a hash of each run's folder as it was
    made.
    """
    folder = tmp_path_factory.mktemp("adding")
    for day in OUTS:
        pq.write_table(feed(day), folder / f"{day}.parquet")
    before = {}
    assert main(command(folder, "out", *FAST, "--keep", "kind", "--set", "allow_small=true")) == 0
    for day, last in (("out2", "out"), ("out3", "out2")):
        before[last] = fingerprint(folder / last)
        assert main(command(folder, day, *onto(folder, last))) == 0
    (folder / "before.json").write_text(json.dumps(before))
    return folder


def released(folder):
    """New note id -> the row that was released."""
    return {
        row["note_id"]: row for row in pq.read_table(folder / "release/notes.parquet").to_pylist()
    }


def crosswalk(folder, name="crosswalk"):
    return pq.read_table(folder / f"vault/{name}.parquet").to_pylist()


def at_once(folder, base, corpus, known=None):
    """The rows of one release of a corpus that is made with key, vectors and channel of another
    one.
    """
    with run_folder(folder, KIND, "0" * 64) as run:
        base.copy_to(run.vault)
        how = {
            "folder": Places(run),
            "key": base.key,
            "settings": base.settings,
            "known": known or {},
        }
        how["held_out"] = HeldOutPatients.read(base.vault)
        job = ReleaseContext(corpus=corpus, found=preflight(corpus), **how)
        entered = treated(job).corpus
        counts = count_words(entered, job.folder.work)
        *_, path = write_notes(
            job, entered, channel_of(job, vectors_of(job, entered, counts), counts)
        )
        return {row["note_id"]: row for row in pq.read_table(path).to_pylist()}


def test_nothing_of_what_is_added_to_changes(desk):
    before = json.loads((desk / "before.json").read_text())
    assert before == {out: fingerprint(desk / out) for out in before}


def test_test_patients_of_the_first_release_stay_test_patients(desk):
    first, *later = (HeldOutPatients.read(desk / out / "vault") for out in OUTS)
    for one in later:
        assert first.patients <= one.patients and first.training <= one.training
    assert len(later[-1].training) > len(first.training)


def test_the_parts_are_the_release_of_all_notes_at_once(desk, tmp_path):
    """Byte for byte: the draws are keyed by key, note, patient and word, and the channel is the
    first one's.
    """
    base = ParentRelease.read(desk / "out/vault")
    # At once, the note that was changed stands there as it was first; as it is later it has an id
    # of its own.
    table = feed("out3", first=80)
    table = pa.concat_tables([feed("out"), table])
    pq.write_table(table, tmp_path / "all.parquet")
    everything = at_once(
        tmp_path / "all",
        base,
        open_corpus(tmp_path / "all.parquet", base.settings.notes, keep=("kind",)),
    )
    parts = [released(desk / out) for out in OUTS]
    (later,) = (
        row["note_id"]
        for row in crosswalk(desk / "out2")
        if row["source_note_id"].startswith(f"{CHANGED}#")
    )
    assert later not in everything and parts[1].pop(later)["kind"] == "b"
    assert [len(part) for part in parts] == [80, 20, 20]
    assert everything == {**parts[0], **parts[1], **parts[2]}


def test_patients_keep_their_ids_and_the_crosswalk_grows(desk):
    first = {row["source_patient_id"]: row["patient_id"] for row in crosswalk(desk / "out")}
    second = {row["source_patient_id"]: row["patient_id"] for row in crosswalk(desk / "out2")}
    both = first.keys() & second.keys()
    assert (
        len(both) >= 10
        and second.keys() - both
        and all(first[patient] == second[patient] for patient in both)
    )
    earlier = crosswalk(desk / "out3", "earlier")
    runs = [json.loads((desk / out / "vault/manifest.json").read_text())["run"] for out in OUTS]
    mine = [
        {**row, "run": run}
        for out, run in zip(OUTS, runs, strict=True)
        for row in crosswalk(desk / out)
    ]
    assert (
        earlier == mine[:101] and len(mine) == 121 and runs[1:] == [f"{runs[0]}-2", f"{runs[0]}-3"]
    )


def test_a_note_that_left_with_another_text_is_a_note_of_its_own(desk):
    """It shares no draw with the first: the key of a draw is the note's id."""
    ids = {row["source_note_id"]: row for row in crosswalk(desk / "out") + crosswalk(desk / "out2")}
    (later,) = (name for name in ids if name.startswith(f"{CHANGED}#"))
    first = released(desk / "out")[ids[CHANGED]["note_id"]]
    second = released(desk / "out2")[ids[later]["note_id"]]
    assert first["patient_id"] == second["patient_id"] and first["note_id"] != second["note_id"]
    assert "another text" in (desk / "out2/release/report.html").read_text()
    assert not any("#" in row["source_note_id"] for row in crosswalk(desk / "out3")), (
        "it left on the second day"
    )


def test_only_words_above_the_floor_of_the_first_release_come_out(desk):
    """What is said by the new notes alone comes out nowhere, however many of their patients say
    it.
    """
    count = {word: set() for word in words(" ".join(feed("out")["text"].to_pylist()))}
    for row in feed("out").to_pylist():
        for word in words(row["text"]):
            count[word].add(row["patient_id"])
    allowed = {word for word, patients in count.items() if len(patients) >= 5}
    for out in OUTS[1:]:
        said = {word for row in released(desk / out).values() for word in words(row["text"])}
        assert said <= allowed and not any(word.startswith("later") for word in said)
    first, third = (load_channel(desk / out / "vault/channel") for out in ("out", "out3"))
    assert first.words == third.words and (first.eligible == third.eligible).all()


def record(folder, edition="internal"):
    return from_json(json.loads((folder / "vault/record.json").read_text())[edition])


def test_the_page_says_what_was_added_to_what_and_what_was_measured_on_both(desk):
    facts = {fact.label: fact.value for fact in record(desk / "out2").corpus.more}
    run = record(desk / "out").run
    assert facts["adds to release"] == run and facts["notes released before with another text"] == 1
    assert facts["words not in its channel"] == 3 * 20 + 1
    assert facts["word vectors"].startswith(f"of release {run}: trained on these notes")
    measured = facts["measured on both releases together"].split(", ")
    assert "uniqueness" in measured and "inversion" not in measured and "utility" not in measured
    assert record(desk / "out2").corpus.skipped == {"released before": 79}
    told = json.loads((desk / "out3/release/manifest.json").read_text())
    assert told["adds_to"] == {"run": f"{run}-2", "nth": 2} and told["accounting"]["skipped"] == {
        "released before": 100
    }
    warnings = record(desk / "out2", "external").warnings
    assert any(
        f"added to release {run}" in line and "the others on these notes alone" in line
        for line in warnings
    )
    on_both = {f.measure: f.n for f in record(desk / "out2").findings}
    assert on_both["attack.kept_columns_unique"] == 101
    alone = {
        f["measure"]: f["n"]
        for f in json.loads((desk / "out2/vault/findings-new.json").read_text())["findings"]
    }
    assert alone["attack.kept_columns_unique"] == 21
    assert str(desk) not in (desk / "out2/release/manifest.json").read_text()
    for out in OUTS:
        assert main(["verify", str(desk / out / "release")]) == 0


def test_the_ledger_holds_one_entry_of_the_key_with_all_that_left(desk, capsys):
    (path,) = (desk / NAME).iterdir()
    made = read_entry(path)
    assert made.vault == desk / "out3/vault" and made.notes.size == 121
    assert read_entry(desk / "out2/vault/ledger.parquet").notes.size == 101
    assert main(command(desk, "out3", *FAST, out="other")) == 2
    assert (
        "released before under another key" in capsys.readouterr().err
        and not (desk / "other").exists()
    )
    assert main(command(desk, "out3", *onto(desk, "out"), out="other")) == 2, (
        "out2 was added to it already"
    )
    assert "were added to release" in capsys.readouterr().err and not (desk / "other").exists()


def test_a_run_that_stopped_after_it_was_entered_goes_on(desk):
    """And its base is the one it had: the entry of the ledger names the vault that is being
    made.
    """
    base = ParentRelease.read(desk / "out2/vault")
    ledger = Ledger(desk / NAME)
    assert base.refuse_unledgered(ledger, desk / "out3/vault").notes.size == 121
    with pytest.raises(UsageError, match="already: release"):
        base.refuse_unledgered(ledger, desk / "out4/vault")


def test_attacks_of_the_command_line_see_the_notes_that_were_added(desk):
    """The feed holds all notes; those that left before are none of this release."""
    context = attacked_release(desk / "out2/release", desk / "out2/vault", desk / "out2.parquet")
    ids = {note.note_id for note in rows(context.original)}
    assert (
        ids == set(context.notes.values()) and len(ids) == 21 and any("#" in name for name in ids)
    )


def test_a_ledger_that_lacks_the_release_vouches_for_nothing(desk, tmp_path, capsys):
    assert (
        main(
            command(
                desk,
                "out3",
                *onto(desk, "out3"),
                "--set",
                f"ledger={tmp_path / 'new'}",
                out="other",
            )
        )
        == 2 + 1
    )
    assert (
        "new: does not contain release" in capsys.readouterr().err and not (desk / "other").exists()
    )


def test_the_ledger_of_a_site_and_another_signing_key_hold_for_what_is_added(
    desk, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("CLINVEIL_LEDGER", str(tmp_path / "site"))
    assert main(command(desk, "out3", *onto(desk, "out2"), out="other")) == 3
    assert "site: does not contain release" in capsys.readouterr().err
    shutil.copytree(desk / NAME, tmp_path / "site")
    key = ["--set", f"signing_key={tmp_path / 'no.pem'}"]
    assert main(command(desk, "out3", *onto(desk, "out3"), *key, out="other")) == 3
    assert "no.pem: is not an unencrypted Ed25519 private key" in capsys.readouterr().err
    assert main(command(desk, "out3", *onto(desk, "out3"), out="other")) == 3
    assert "were released before" in capsys.readouterr().err and not (desk / "other").exists()


def test_a_feed_without_anything_new_is_told_so(desk, capsys):
    assert main(command(desk, "out3", *onto(desk, "out3"), out="other")) == 3
    assert (
        "out3.parquet: all 120 notes were released before" in capsys.readouterr().err
        and not (desk / "other").exists()
    )


def test_notes_under_other_ids_are_refused(desk, capsys):
    renamed = feed("out2").set_column(
        0, "note_id", pc.binary_join_element_wise(feed("out2")["note_id"], "x", "-")
    )
    pq.write_table(renamed, desk / "renamed.parquet")
    assert main(command(desk, "renamed", *onto(desk, "out3"), out="other")) == 2
    assert "100 % of these notes were released before" in capsys.readouterr().err.replace(
        "\u202f", " "
    )


def test_flags_that_do_not_belong_together(desk, capsys):
    for flags, said in (
        (["--add"], "--add requires the vault"),
        (["--vault", str(desk / "out/vault")], "--vault requires --add"),
        ([*onto(desk, "out3"), "--vectors", "v.vec"], "--vectors cannot differ"),
        (
            [*onto(desk, "out3"), "--min-patients", "3", "--seed", "1"],
            "--min-patients, --seed cannot differ",
        ),
        ([*onto(desk, "out3"), "-o", str(desk / "out3/more")], "is inside"),
    ):
        assert main(command(desk, "out3", *flags, out="other")) == 2, said
        assert said in capsys.readouterr().err
    assert not (desk / "other").exists()


def test_settings_are_those_of_the_first_release(desk):
    base = ParentRelease.read(desk / "out/vault")
    kept = base.settings_for(ReleaseSettings(workers=1, model=("lr", "lr"), epochs=1))
    assert (
        kept.model == ("lr", "lr")
        and kept.keep == ("kind",)
        and kept.vectors.dim == 8
        and not kept.phi
    )
    with pytest.raises(
        UsageError,
        match=r"--background, --keep cannot differ .*these may differ: --address, --again",
    ):
        base.settings_for(ReleaseSettings(background=0.1, keep=("other",)))
    assert set(MAY_DIFFER) <= ReleaseSettings.flags().keys()


def test_a_file_that_says_what_is_written_must_say_the_same(desk, tmp_path):
    (tmp_path / "drop.txt").write_text("wa\n")
    base = ParentRelease.read(desk / "out/vault")
    with pytest.raises(UsageError, match="--drop-words cannot differ"):
        base.settings_for(ReleaseSettings(drop_words=tmp_path / "drop.txt"))
    how = base.settings.but(drop_words=tmp_path / "drop.txt")
    private = {
        **base.manifest["private"],
        "files_sha256": {"drop_words": fingerprint(tmp_path / "drop.txt")},
    }
    given = ParentRelease(
        base.vault, base.key, how, {**base.manifest, "private": private}, base.left
    )
    assert given.settings_for(ReleaseSettings()).channel.drop_words == tmp_path / "drop.txt"
    (tmp_path / "drop.txt").write_text("wb\n")
    with pytest.raises(InputError, match="is not the file that the release was made with"):
        given.settings_for(ReleaseSettings())
    (tmp_path / "drop.txt").unlink()
    with pytest.raises(UsageError, match="was made with --drop-words"):
        given.settings_for(ReleaseSettings())


def told(vault, **changed):
    from clinveil.releases.manifest import sealed

    (vault / "manifest.json").write_text(
        sealed({**json.loads((vault / "manifest.json").read_text()), **changed})
    )


def state(vault, status):
    said = json.loads((vault / "state.json").read_text())
    (vault / "state.json").write_text(json.dumps({**said, "status": status}))


def fewer(path):
    pq.write_table(pq.read_table(path).slice(1), path)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda v: (v / "key.bin").unlink(), "cannot read the key file"),
        (lambda v: (v / "key.bin").write_bytes(b"1" * 31), "a key must have 32 bytes"),
        (lambda v: (v / "key.bin").write_bytes(b"1" * 32), "the key does not match the manifest"),
        (
            lambda v: (v / "channel/indices.npy").write_bytes(b""),
            "channel does not match the manifest",
        ),
        (lambda v: shutil.rmtree(v / "vectors"), "vectors does not match the manifest"),
        (lambda v: fewer(v / "crosswalk.parquet"), "notes are missing from the crosswalk"),
        (lambda v: (v / "crosswalk.parquet").write_bytes(b"PAR1"), "crosswalk cannot be read"),
        (lambda v: (v / "ledger.parquet").write_bytes(b""), "not a ledger entry"),
        (lambda v: told(v, version="0.0.1"), "was made by clinveil 0.0.1"),
        (
            lambda v: told(v, private={"settings_in_full": {"gone": 1}}),
            "was made by another version",
        ),
        (lambda v: (v / "manifest.json").write_text("{}"), "is not the vault of a release"),
        (
            lambda v: (v / "manifest.json").write_bytes(
                (v / "manifest.json").read_bytes().replace(b"w", b"v")
            ),
            "the manifest was changed",
        ),
        (lambda v: state(v, "refused"), "of a refused release"),
        (lambda v: state(v, "running"), "of an unfinished release"),
        (
            lambda v: (v / "deidentify.json").write_text("{}") and (v / "manifest.json").unlink(),
            "clinveil deidentify",
        ),
        (
            lambda v: (v / "manifest.json").write_text('{"schema": "clinveil.synthesis/1"}'),
            "an earlier version",
        ),
    ],
)
def test_a_vault_that_cannot_be_added_to_is_told_in_one_line(desk, tmp_path, damage, said):
    shutil.copytree(desk / "out/vault", tmp_path / "vault")
    damage(tmp_path / "vault")
    with pytest.raises(InputError, match=said) as caught:
        ParentRelease.read(tmp_path / "vault")
    assert str(tmp_path) not in str(caught.value)


def test_other_folders_are_no_vaults(desk, tmp_path):
    with pytest.raises(
        InputError, match=r"out: is not the vault of a release .pass its folder vault"
    ):
        ParentRelease.read(desk / "out")
    with pytest.raises(InputError, match="is not the vault of a release"):
        ParentRelease.read(tmp_path / "nowhere")


def test_an_interrupted_run_goes_on_and_few_notes_may_be_added(desk, monkeypatch, tmp_path):
    """Three notes, more words of which are unknown than known: the page says that a new channel is
    due.
    """
    from clinveil.releases.producers import _channel as run

    few = pa.table(
        {
            "note_id": list("abc"),
            "patient_id": ["p1", "p2", "z"],
            "text": ["wa some odd things"] * 3,
        }
    )
    pq.write_table(few.append_column("kind", pa.array(["a"] * 3)), desk / "few.parquet")
    shutil.copytree(desk / NAME, tmp_path / NAME)
    how = [*onto(desk, "out3"), "--set", f"ledger={tmp_path / NAME}"]

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "write_notes", stop)
        assert main(command(desk, "few", *how)) == 130
    assert not (desk / "few/release").exists() and (desk / "few/vault/channel").exists()
    assert main(command(desk, "few", *how)) == 0
    assert (
        len(released(desk / "few")) == 3 and Ledger(tmp_path / NAME).entries()[0].notes.size == 122
    )
    assert any("to train a new channel" in line for line in record(desk / "few").warnings)


def test_part_files_are_added_to_a_release_of_part_files_whose_notes_are_known_again(tmp_path):
    parts = {"old": feed("out"), "new": feed("out2", first=80)}
    for name, table in parts.items():
        (tmp_path / name).mkdir()
        for at in (0, 1):
            pq.write_table(
                table.slice(at * 10, 10 if not at else None), tmp_path / name / f"{at}.parquet"
            )
    run = ["release", str(tmp_path / "old/*.parquet"), "-o", str(tmp_path / "out"), *QUIET, *FAST]
    assert main([*run, "--keep", "kind", "--set", "allow_small=true"]) == 0
    add = [
        "release",
        str(tmp_path / "new"),
        "-o",
        str(tmp_path / "out2"),
        *QUIET,
        *onto(tmp_path, "out"),
    ]
    assert main(add) == 0
    assert len(released(tmp_path / "out2")) == 20
    facts = {fact.label for fact in record(tmp_path / "out2").corpus.more}
    assert "measured on both releases together" in facts


DEMO = [
    "--set",
    "epochs=1",
    "--set",
    "window=5",
    "--set",
    "dim=8",
    "--set",
    "allow_small=true",
]
DEMO += ["--set", "max_names=1", "--set", "max_linkage=1"]


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """Invented notes with names and dates: three quarters of each patient's released, the others
    added beside them.
    """
    folder = tmp_path_factory.mktemp("hospital")
    assert (
        main(
            [
                "demo",
                "--notes-only",
                "-o",
                str(folder / "demo"),
                "--patients",
                "24",
                "--seed",
                "3",
                "--quiet",
            ]
        )
        == 0
    )
    notes = pq.read_table(folder / "demo/notes.parquet")
    later = pa.array(np.arange(notes.num_rows) % 4 == 3)
    pq.write_table(notes.filter(pc.invert(later)), folder / "out.parquet")
    pq.write_table(notes.filter(later), folder / "out2.parquet")
    shutil.copy(folder / "demo/patients.parquet", folder / "patients.parquet")
    people = ["--patients", str(folder / "patients.parquet")]
    assert main(command(folder, "out", *DEMO, *people)) == 0
    assert main(command(folder, "out2", *onto(folder, "out"))) == 0
    return folder


def test_new_notes_are_treated_and_drawn_as_they_would_be_at_once(hospital, tmp_path):
    """Except where a name in other notes is detected only if all are searched together."""
    from clinveil.corpus.people import read_patients

    base = ParentRelease.read(hospital / "out/vault")
    both = pa.concat_tables([pq.read_table(hospital / f"{day}.parquet") for day in ("out", "out2")])
    pq.write_table(both, tmp_path / "all.parquet")
    corpus = open_corpus(tmp_path / "all.parquet", base.settings.notes)
    everything = at_once(
        tmp_path / "all", base, corpus, read_patients(hospital / "patients.parquet")
    )
    parts = {**released(hospital / "out"), **released(hospital / "out2")}
    assert parts.keys() == everything.keys()
    assert sum(everything[note] != row for note, row in parts.items()) < len(parts) / 5


def test_what_needs_only_released_notes_is_measured_and_judged_on_both_parts(hospital):
    made = record(hospital / "out2")
    names = [gate.name for gate in made.gates]
    assert "own name no more often than others'" in names
    assert "own name no more often than others', with the earlier releases" in names


def test_the_known_patients_must_be_given_where_they_moved(hospital, capsys):
    feed_at = hospital / "patients.parquet"
    feed_at.rename(hospital / "moved.parquet")
    try:
        assert main(command(hospital, "out2", *onto(hospital, "out"), "--force", out="")) == 2
        assert "was made with --patients" in capsys.readouterr().err
        people = ["--patients", str(hospital / "moved.parquet")]
        assert main(command(hospital, "out2", *onto(hospital, "out"), *people, out="")) == 0
        assert "0 notes were released before" in capsys.readouterr().out
    finally:
        (hospital / "moved.parquet").rename(feed_at)
