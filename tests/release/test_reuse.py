"""`clinveil release --reuse`: a later release with the key, channel, model and test patients of an
earlier one.
"""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clinveil
from clinveil.channel import load_channel
from clinveil.cli import main
from clinveil.core import fingerprint, words
from clinveil.corpus import HeldOutPatients
from clinveil.releases.earlier.ledger import read_entry
from no_limits import NO_LIMITS

FAST = [
    *("--as", "obfuscated"),
    "--set",
    "vectors.epochs=1",
    "--set",
    "vectors.dim=8",
    "--set",
    "phi=false",
    "--set",
    "identifiers.language=any",
]
FAST += ["--limits", str(NO_LIMITS), "--set", "channel.allow_small=true"]
QUIET = ["--workers", "1", "--quiet"]
MONTHS = {"may": (0, 80), "june": (80, 120)}


def note(number, *, later=0):
    """A note of 100 words with a name and a date; `later`: words that only later notes have."""
    rng = np.random.default_rng(number)
    drawn = [f"w{chr(97 + i // 15)}{chr(97 + i % 15)}" for i in rng.integers(0, 225, 100).tolist()]
    new = [f"later{chr(97 + i)}" for i in range(later)]
    patient = number // 2 % 40
    name = ("Miller", "Garcia", "Novak", "Okafor")[patient % 4]
    day = f"{patient % 9 + 1}/14/2019"
    return f"Seen by Dr. {name} on {day}. {' '.join([*drawn, *new])}."


def notes_of(month):
    first, end = MONTHS[month]
    numbers = range(first, end)
    return pa.table(
        {
            "note_id": [f"n{i}" for i in numbers],
            "patient_id": [f"p{i // 2 % 40}" if i < 110 else f"p{i}" for i in numbers],
            "text": [note(i, later=8 * (month == "june")) for i in numbers],
            "kind": [("a", "b")[i % 2] for i in numbers],
        }
    )


NAME = "clinveil-ledger"  # of these tests, next to their notes


def command(desk, month, out, *flags):
    where = ["-o", str(desk / out)] if out else []  # without it, the plan is printed
    where += ["--set", f"ledger={desk / NAME}"]
    return ["release", str(desk / f"{month}.parquet"), *where, *QUIET, "--keep", "kind", *flags]


def reusing(desk, out="may"):
    return ["--reuse", str(desk / out / "vault")]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """An obfuscated release of May, and one of June that reuses it."""
    folder = tmp_path_factory.mktemp("reuse")
    for month in MONTHS:
        pq.write_table(notes_of(month), folder / f"{month}.parquet")
    assert main(command(folder, "may", "may", *FAST)) == 0
    before = fingerprint(folder / "may")
    assert main(command(folder, "june", "june", *reusing(folder))) == 0
    assert fingerprint(folder / "may") == before, "the first run was changed"
    return folder


@pytest.fixture(scope="module")
def readable(tmp_path_factory):
    """The same two months as readable notes."""
    folder = tmp_path_factory.mktemp("readable")
    for month in MONTHS:
        pq.write_table(notes_of(month), folder / f"{month}.parquet")
    kind = ["--as", "deidentified", "--set", "identifiers.language=any"]
    assert main(command(folder, "may", "may", *kind)) == 0
    assert main(command(folder, "june", "june", *reusing(folder), "--limits", str(NO_LIMITS))) == 0
    return folder


def released(folder):
    rows = pq.read_table(folder / "release/notes.parquet").to_pylist()
    return {row["note_id"]: row for row in rows}


def crosswalk(folder):
    return pq.read_table(folder / "vault/crosswalk.parquet").to_pylist()


def ids_of_patients(folder):
    return {row["source_patient_id"]: row["patient_id"] for row in crosswalk(folder)}


def refused(capsys, code, arguments, message):
    capsys.readouterr()
    assert main(arguments) == code
    assert message in capsys.readouterr().err.replace("\u202f", " ")


@pytest.mark.parametrize("kind", ["desk", "readable"])
def test_patients_keep_their_ids_and_their_sides(kind, request):
    folder = request.getfixturevalue(kind)
    may = ids_of_patients(folder / "may")
    june = ids_of_patients(folder / "june")
    assert len(may.keys() & june.keys()) >= 10 and june.keys() - may.keys()
    assert all(may[patient] == june[patient] for patient in may.keys() & june.keys())
    first, second = (HeldOutPatients.read(folder / month / "vault") for month in MONTHS)
    assert first.patients <= second.patients and first.training <= second.training
    assert june.keys() <= second.patients | second.training


def test_a_note_that_is_released_again_is_the_same_note(desk):
    assert main(command(desk, "may", "again", *reusing(desk, "june"))) == 0
    assert released(desk / "again") == released(desk / "may")


def test_surrogates_and_date_offsets_of_a_patient_stay(readable):
    """Each patient's clinician and day are the same in both months, so their surrogates are too."""
    starts = {}
    for month in MONTHS:
        source = {row["note_id"]: row["source_patient_id"] for row in crosswalk(readable / month)}
        for new_id, row in released(readable / month).items():
            start = row["text"].partition(". w")[0]
            starts.setdefault(source[new_id], {}).setdefault(month, set()).add(start)
    both = [seen for seen in starts.values() if len(seen) == 2]
    assert len(both) >= 10
    assert all(seen["may"] == seen["june"] and len(seen["may"]) == 1 for seen in both)
    texts = " ".join(row["text"] for row in released(readable / "june").values())
    assert not any(name in texts for name in ("Miller", "Garcia", "Novak", "Okafor"))


def test_a_word_that_the_first_channel_did_not_know_never_comes_out(desk):
    channel = load_channel(desk / "may/vault/channel")
    allowed = {word for word, ok in zip(channel.words, channel.eligible, strict=True) if ok}
    said = {word for row in released(desk / "june").values() for word in words(row["text"])}
    assert said <= allowed and not any(word.startswith("later") for word in said)
    assert fingerprint(desk / "june/vault/channel") == fingerprint(desk / "may/vault/channel")


@pytest.mark.parametrize("again", [(), ("--again",)])
@pytest.mark.parametrize("kind", ["desk", "readable"])
def test_an_id_that_was_released_with_another_text_is_refused(kind, again, request, capsys):
    folder = request.getfixturevalue(kind)
    changed = notes_of("may").slice(0, 12).to_pydict()
    changed["text"] = [f"{text} 3 addendum" for text in changed["text"]]
    pq.write_table(pa.table(changed), folder / "changed.parquet")
    arguments = command(folder, "changed", "other", *reusing(folder), *again)
    refused(capsys, 2, arguments, "12 notes have the id of a released note, with another text")
    assert not (folder / "other").exists()


def test_a_known_note_with_other_identifiers_found_shares_no_draws(tmp_path, capsys):
    """Only the second run knows the patients' names, so it would draw for other words."""
    notes = notes_of("may").to_pydict()
    notes["text"] = [f"{text} with quellfisch and pain" for text in notes["text"]]
    pq.write_table(pa.table(notes), tmp_path / "may.parquet")
    pq.write_table(pa.table(notes).slice(60), tmp_path / "june.parquet")
    names = ["Quellfisch Ziegenhals"] * 40
    people = {"patient_id": [f"p{i}" for i in range(40)], "name": names}
    pq.write_table(pa.table(people), tmp_path / "people.parquet")
    fast = [flag.replace("phi=false", "phi=true") for flag in FAST]
    assert main(command(tmp_path, "may", "may", *fast)) == 0
    limits = ["--limits", str(NO_LIMITS)]
    later = command(tmp_path, "june", "june", *reusing(tmp_path), *limits)
    listed = ["--patients", str(tmp_path / "people.parquet")]
    refused(capsys, 2, [*later, *listed], "20 notes were released before with other identifiers")
    assert not (tmp_path / "june").exists()
    assert main(later) == 0  # treated as before, they are drawn as before
    again = released(tmp_path / "june")
    before = released(tmp_path / "may")
    assert again and all(before[name] == row for name, row in again.items())


def test_texts_under_other_ids_are_refused_without_again(desk, capsys):
    renamed = notes_of("may").to_pydict()
    renamed["note_id"] = [f"{name}-x" for name in renamed["note_id"]]
    pq.write_table(pa.table(renamed), desk / "renamed.parquet")
    arguments = command(desk, "renamed", "other", *reusing(desk))
    refused(capsys, 2, arguments, "100 % of these notes were released before under other ids")
    assert not (desk / "other").exists()


def test_the_ledger_has_one_entry_of_the_key_and_counts_its_releases(desk, capsys):
    (path,) = (desk / NAME).glob("*.parquet")
    entry = read_entry(path)
    assert entry.runs >= 2 and len(entry.rows) == 120
    assert entry.covers(read_entry(desk / "may/vault/ledger.parquet"))
    runs = [json.loads((desk / m / "vault/manifest.json").read_text())["run"] for m in MONTHS]
    assert runs[1] == f"{runs[0]}-2"
    public = json.loads((desk / "june/release/manifest.json").read_text())
    assert public["reuses"] == {"run": runs[0], "nth": 2}
    assert f"of release {runs[0]}: trained" in public["vectors"]["from"]
    assert str(desk) not in json.dumps(public)
    page = (desk / "june/release/report.html").read_text()
    assert "under a new key to train a new one" in page
    joins = f"joins release {runs[0]} under the same key, and both must be treated as one"
    assert joins in page.partition('id="details"')[0]  # on page one
    assert "joins release" in (desk / "june/release/README.md").read_text()
    assert "joins release" not in (desk / "may/release/report.html").read_text()
    other = command(desk, "june", "other", *FAST)
    refused(capsys, 2, other, f"{desk / NAME}: 100 % of these notes were released before")
    for month in MONTHS:
        assert main(["verify", str(desk / month / "release")]) == 0


def test_a_ledger_without_the_release_is_refused(desk, tmp_path, capsys):
    elsewhere = ("--set", f"ledger={tmp_path / 'site'}")
    arguments = command(desk, "june", "other", *reusing(desk), *elsewhere)
    refused(capsys, 3, arguments, f"{tmp_path / 'site'}: does not contain release")
    assert not (desk / "other").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--set", "channel.n=5"), "channel.n cannot differ from the run of --reuse"),
        (("--set", "vectors.dim=16"), "vectors.dim cannot differ from the run of --reuse"),
        (("--as", "deidentified"), "the vault is that of a release --as obfuscated"),
        (("--seed", "3"), "--seed and --reuse exclude each other"),
        (("--set", "channel.keep_words=words.txt"), "channel.keep_words cannot differ"),
    ],
)
def test_settings_of_reused_parts_cannot_differ(desk, flags, message, capsys):
    arguments = command(desk, "june", "other", *reusing(desk), *flags)
    refused(capsys, 2, arguments, message)
    assert not (desk / "other").exists()


def test_given_vectors_exclude_reuse(desk, capsys):
    vectors = ("--vectors", str(desk / "may/vault/vectors"))
    arguments = command(desk, "june", "other", *reusing(desk), *vectors)
    refused(capsys, 2, arguments, "--vectors and --reuse exclude each other")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda vault: (vault / "key.bin").write_bytes(bytes(32)), "the key does not match"),
        (lambda vault: shutil.rmtree(vault / "channel"), "channel does not match the manifest"),
        (lambda vault: (vault / "test_patients.parquet").unlink(), "test_patients.parquet is miss"),
        (lambda vault: (vault / "crosswalk.parquet").unlink(), "crosswalk cannot be read"),
        (lambda vault: (vault / "ledger.parquet").write_text("x"), "not a ledger entry"),
        (lambda vault: (vault / "manifest.json").unlink(), "not the vault of a release"),
    ],
)
def test_a_damaged_vault_is_refused(desk, tmp_path, damage, message, capsys):
    vault = tmp_path / "vault"
    shutil.copytree(desk / "may/vault", vault)
    damage(vault)
    flags = ["--set", f"ledger={desk / NAME}", "--reuse", str(vault)]
    refused(capsys, 3, command(desk, "june", "other", *flags), message)
    assert not (desk / "other").exists()


def test_the_vault_of_a_refused_release_is_refused(desk, tmp_path, capsys):
    vault = tmp_path / "vault"
    shutil.copytree(desk / "may/vault", vault)
    state = json.loads((vault / "state.json").read_text())
    (vault / "state.json").write_text(json.dumps(state | {"status": "refused"}))
    arguments = command(desk, "june", "other", "--reuse", str(vault))
    refused(capsys, 3, arguments, "is the vault of a refused release")
    refused(capsys, 3, command(desk, "june", "other", "--reuse", str(desk)), "")


def test_a_run_that_stopped_after_it_was_entered_goes_on(desk):
    state = desk / "june/vault/state.json"
    before = released(desk / "june")
    (path,) = (desk / NAME).glob("*.parquet")
    entry = read_entry(path)
    stopped = json.loads(state.read_text()) | {"status": "running"}
    state.write_text(json.dumps(stopped))
    assert main(command(desk, "june", "june", *reusing(desk))) == 0
    assert released(desk / "june") == before
    assert len(read_entry(path).rows) == len(entry.rows)


def test_the_plan_names_no_training_and_the_api_reuses(desk, capsys):
    assert main(command(desk, "june", "", *reusing(desk))) == 0
    assert "passes over" not in capsys.readouterr().out
    vault = desk / "may/vault"
    frame = notes_of("june").to_pandas()
    made = clinveil.release(
        frame, desk / "api", reuse=vault, keep=("kind",), again=True, ledger=desk / NAME
    )
    assert not made.refused
    assert released(desk / "api") == released(desk / "june")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Synthetic notes, and more of the same model."""
    folder = tmp_path_factory.mktemp("synthetic")
    pq.write_table(notes_of("may"), folder / "may.parquet")
    kind = ["--as", "synthetic", "--set", "lm.model=unigram", "--set", "phi=false"]
    kind += ["--set", "identifiers.language=any", "--set", "synthetic.count=60"]
    assert main(command(folder, "may", "may", *kind)) == 0
    more = ["--as", "synthetic", "--set", "synthetic.count=60"]
    assert main(command(folder, "may", "more", *reusing(folder), *more)) == 0
    return folder


def test_a_reused_model_writes_other_notes(written):
    first, second = (
        [row["text"] for row in released(written / out).values()] for out in ("may", "more")
    )
    assert len(first) == len(second) == 60
    assert not {*first} & {*second}
    models = [fingerprint(written / out / "vault/model") for out in ("may", "more")]
    assert models[0] == models[1]
    manifest = json.loads((written / "more/release/manifest.json").read_text())
    assert manifest["model"]["trained"] == "before" and manifest["reuses"]["nth"] == 2


def test_a_model_is_reused_with_the_notes_that_it_was_trained_on(written, capsys):
    pq.write_table(notes_of("june"), written / "june.parquet")
    arguments = command(written, "june", "other", *reusing(written), "--as", "synthetic")
    refused(capsys, 3, arguments, "was trained on other notes")
    assert not (written / "other").exists()
    arguments = command(written, "may", "other", *reusing(written), "--as", "synthetic")
    arguments.remove("--keep")
    arguments.remove("kind")
    refused(capsys, 3, arguments, "was trained with other labels")
    flags = ("--as", "synthetic", "--set", "lm.model=ngram")
    arguments = command(written, "may", "other", *reusing(written), *flags)
    refused(capsys, 2, arguments, "lm.model cannot differ")
