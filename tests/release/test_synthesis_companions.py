"""What leaves beside synthetic notes: card, manifest and sums, what they say and never say; and `verify`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from synthesis_cases import (
    COMMON,
    Always,
    Copying,
    bytes_of,
    notes_of,
    open_to_others,
    rows_of,
    synthesis,
    texts_in,
    with_model,
    write_csv,
)

from clinveil.cli.main import main
from clinveil.core.errors import GateError, MissingExtra
from clinveil.core.finding import Finding
from clinveil.core.keys import TEST_SEED
from clinveil.corpus.people import Patient, write_patients
from clinveil.releases.manifest import released_files, sealed, verify, write_companions, write_sums
from clinveil.releases.settings import SynthesisSettings
from clinveil.releases.synthesis import Synthesis
from clinveil.releases.synthesis_record import SHOWN, seed_mark
from clinveil.report.edition import outward_finding

FILES = ["README.md", "SHA256SUMS", "manifest.json", "notes.parquet"]
SECRET = "zyqquavex"  # in every note of every patient: the floor lets it pass, and it may stand in the notes alone
NAMES = [("Adam", "Stone"), ("Berta", "River"), ("Clara", "Field")]


def notes_with(word=SECRET):
    return [(note, patient, f"{text} {word}.") for note, patient, text in rows_of()]


def made(folder, **changed):
    """A finished run of a unigram under a secret key, with OUT a folder; and its two manifests."""
    run = synthesis(folder, out="out", **{"model": "unigram", "seed": None, "notes": notes_of(notes_with()), **changed})
    run.run()
    return run, manifest(run.out), json.loads((run.vault / "manifest.json").read_text())


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    write_patients([Patient(f"k{i}", name) for i, name in enumerate(NAMES)], folder / "known.parquet")
    return made(folder, patients=folder / "known.parquet")


@pytest.fixture
def released(finished, tmp_path):
    """A copy that may be damaged."""
    shutil.copytree(finished[0].out, tmp_path / "released")
    return tmp_path / "released"


def failed(folder):
    return [check.what for check in verify(folder) if not check.passed]


def test_the_notes_leave_with_their_companions(finished):
    run, _, _ = finished
    assert sorted(bytes_of(run.out)) == FILES
    assert open_to_others(run.out) == []
    assert failed(run.out) == []
    assert len(verify(run.out)) == 9
    assert main(["verify", str(run.out)]) == 0


def test_sha256sum_agrees(finished):
    done = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=finished[0].out, capture_output=True)
    assert done.returncode == 0
    assert done.stdout.count(b": OK") == 3


def test_the_card_says_what_it_is(finished):
    run, _, _ = finished
    card, texts = (run.out / "README.md").read_text(), texts_in(run.out)
    words = [word for text in texts for word in text.split()]
    assert "These notes are synthetic" in card
    assert "a unigram: words drawn one by one" in card
    assert "| 25 |" in card
    assert f"| Words | {len(words):,} |" in card
    unknown = words.count("<unk>")
    assert f"| of which `<unk>` | {unknown:,} ({100 * unknown / len(words):.1f}\u202f%) |" in card
    assert "this attack failed; it never means" in " ".join(card.split())
    assert "neither S-PDTP nor membership inference nor canaries" in card
    assert "| seed of the draws | secret key |" in card
    assert "| seed of the model | secret |" in card
    assert TEST_SEED not in card
    assert card.endswith("\n")
    for gate in json.loads((run.vault / "manifest.json").read_text())["gates"]:
        assert re.search(rf"^\| {gate['name']} \| [^|]+ \| [^|]+ \| {gate['outcome']} \| [^|]+ \|$", card, re.MULTILINE)


def test_the_card_counts_what_was_cut(tmp_path):
    run, public, _ = made(tmp_path, of=with_model(lambda notes: Always(notes, 3)), count=1_200, longest=12)
    card = (run.out / "README.md").read_text()
    assert "| Notes cut at the longest length (12 tokens) | 1,200 |" in card
    assert public["counts"]["truncated"] == 1_200
    assert "size_categories: [1K<n<10K]" in card


def test_the_card_says_that_no_names_were_looked_for(finished, tmp_path):
    line = "Names of known patients were **not** looked for"
    assert line not in (finished[0].out / "README.md").read_text()
    run, public, _ = made(tmp_path)
    assert line in (run.out / "README.md").read_text()
    assert public["settings"]["patients_given"] is False


def test_the_table_of_the_card_is_one_table(finished):
    """A value with a bar or a new line in it would break a row."""
    for line in (finished[0].out / "README.md").read_text().splitlines():
        if line.startswith("|"):
            assert line.count("|") - line.count(r"\|") in (3, 6), line


def test_the_manifest_says_how_it_was_made(finished):
    run, public, inside = finished
    assert (public["schema"], public["kind"]) == ("clinveil.manifest/1", "synthetic")
    assert set(public["settings"]) == {*SHOWN, "held_out", "patients_given"}
    assert public["settings"]["patients_given"] is True
    assert public["test_seed"] is False
    assert public["model"] == {"kind": "unigram", "trained": "in this run", "vocabulary": "words", "recipe": None}
    assert public["counts"] == inside["notes"]
    assert [g["name"] for g in public["gates"]] == [g["name"] for g in inside["gates"]]
    assert len(public["gates"]) == 5
    assert public["findings"] == [outward_finding(Finding.from_dict(f)) for f in inside["findings"]]
    assert public["files"] == {"notes.parquet": released_files(run.out)["notes.parquet"]}
    assert public["notes"]["rows"] == 25


def everything_said(folder):
    return b"".join(data for name, data in bytes_of(folder).items() if name != "notes.parquet").decode().casefold()


def test_nothing_secret_leaves(finished):
    """No word of a note (not even one that may stand in the notes), no id, no seed, no key, no path, no name."""
    run, _, inside = finished
    said = everything_said(run.out)
    assert SECRET in " ".join(texts_in(run.out))
    secret = [SECRET, *COMMON, "rareaa", "70003", "n1-0", "known.parquet", str(run.out.parent), run.vault.name]
    secret += [part for name in NAMES for part in name]
    secret += [(run.vault / "key.bin").read_bytes().hex(), "vocabulary_sha256", "notes_sha256"]
    about = json.loads((run.vault / "model" / "model.json").read_text())["about"]
    secret += [about["split"]["notes_sha256"], "training_seed", "measuring_seed"]
    assert [word for word in secret if word.casefold() in said] == []
    for seed in (inside["training_seed"], inside["measuring_seed"]):
        assert not re.search(rf"(?<!\d){seed}(?!\d)", said)


def test_every_setting_that_leaves_was_chosen():
    """A new setting is shown to nobody until it is added to the list; these hold paths, columns and seeds."""
    inner = {"patients", "seed", "text", "id", "patient", "label", "keep", "encoding", "preset", "device", "workers"}
    assert not inner & set(SHOWN)
    assert set(SHOWN) <= set(SynthesisSettings.model_fields)


def test_a_gate_that_fails_lets_no_companion_out(tmp_path):
    run = synthesis(tmp_path, out="out", of=with_model(Copying), longest=500, span=10)
    with pytest.raises(GateError):
        run.run()
    assert [path.name for path in tmp_path.iterdir()] == ["vault"]


def test_companions_come_with_the_notes_or_not_at_all(tmp_path, monkeypatch):
    from clinveil.releases import synthesis as room

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(room, "write_companions", full)
        with pytest.raises(OSError, match="No space"):
            made(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["vault"]
    run, _, _ = made(tmp_path)
    assert failed(run.out) == []


def test_the_folder_is_a_corpus_still(finished):
    assert len(texts_in(finished[0].out)) == 25


def test_one_file_has_no_companions_and_says_so(tmp_path):
    said = []
    run = synthesis(tmp_path, out="one.csv", model="unigram", say=said.append)
    run.run()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.csv", "vault"]
    assert any("without companions" in line and "README.md" in line for line in said)
    folder = synthesis(tmp_path, out="many", vault="v", model="unigram", say=(told := []).append)
    folder.run()
    assert not any("without companions" in line for line in told)
    assert any("clinveil verify" in line for line in told)


@pytest.mark.parametrize("name", FILES)
def test_verify_sees_every_change(name, released):
    data = (released / name).read_bytes()
    (released / name).write_bytes(data[:-3] + b"\nx\n")
    assert failed(released)


@pytest.mark.parametrize("name", FILES)
def test_verify_sees_what_is_missing(name, released):
    (released / name).unlink()
    assert failed(released)


def test_verify_wants_no_report(released):
    assert not (released / "report.html").exists()
    assert failed(released) == []
    (released / "report.html").write_text("a page")
    write_sums(released)
    assert failed(released) == []


@pytest.mark.parametrize("name", ["more.parquet", "model/model.json", "sub/SHA256SUMS", ".hidden"])
def test_verify_lets_nothing_else_lie_there_though_the_sums_name_it(name, released):
    (released / name).parent.mkdir(exist_ok=True)
    (released / name).write_text("x")
    write_sums(released)
    assert failed(released) == ["nothing but the notes and what belongs to them is there"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"test_seed": True}, "no test seed"),
        ({"gates": []}, "all gates passed"),
        ({"gates": [{"name": "a", "passed": False}]}, "all gates passed"),
        ({"files": {"notes.parquet": "0" * 64}}, "the manifest names the released notes"),
        ({"kind": "other"}, "all files are there"),
        ({"kind": None}, "all files are there"),
        ({"notes": None}, "the manifest and the list of sums say what they should"),
        ({"notes": {"file": ["notes.parquet"]}}, "the manifest and the list of sums say what they should"),
        ({"notes": {"file": "../vault/key.bin"}}, "nothing but the notes and what belongs to them is there"),
    ],
)
def test_each_lie_of_a_manifest_fails(change, what, released):
    (released / "manifest.json").write_text(sealed({**manifest(released), **change}))
    write_sums(released)
    assert what in failed(released) or "are damaged" in verify(released)[0].said


def test_the_rows_are_counted(released):
    notes = pq.read_table(released / "notes.parquet")
    pq.write_table(notes.slice(0, 20), released / "notes.parquet")
    document = manifest(released) | {"files": {"notes.parquet": released_files(released)["notes.parquet"]}}
    write_companions(released, "a card", document)
    assert failed(released) == ["the notes have the columns and the rows that the manifest says"]


def test_a_public_seed_of_the_draws_is_said_everywhere(tmp_path):
    run, public, inside = made(tmp_path, seed=3)
    card = (run.out / "README.md").read_text()
    assert TEST_SEED in card
    assert "| seed of the draws | **public** |" in card
    assert public["test_seed"] is True
    assert public["public_seeds"] == inside["public_seeds"] == ["notes", "model"]
    assert failed(run.out) == ["no test seed"]
    assert main(["verify", str(run.out)]) == 4


def test_a_public_seed_of_the_model_counts_too(tmp_path):
    """The writing run gives no seed; the model's split and training can be repeated by anybody all the same."""
    first, _, _ = made(tmp_path, seed=1)
    later, public, inside = made(tmp_path / "later", source=first.vault / "model")
    card = (later.out / "README.md").read_text()
    assert public["public_seeds"] == ["model"]
    assert public["test_seed"] is True
    assert TEST_SEED in card
    assert "The model was trained with a public seed." in card
    assert "drawn under a public seed" not in card
    assert "| seed of the draws | secret key |" in card
    assert pq.read_schema(later.out / "notes.parquet").metadata[b"clinveil"].decode() == TEST_SEED
    assert inside["warning"] == TEST_SEED
    assert later.mark == f"{TEST_SEED} (public seed of the model)"
    assert failed(later.out) == ["no test seed"]


def test_the_seed_of_the_vault_is_that_of_the_model(tmp_path):
    first, _, before = made(tmp_path)
    later, _, inside = made(tmp_path / "later", source=first.vault / "model")
    split = json.loads((first.vault / "model" / "model.json").read_text())["about"]["split"]
    assert inside["training_seed"] == before["training_seed"] == split["seed"]
    assert inside["measuring_seed"] != inside["training_seed"]
    assert inside["model"]["trained"] == "before"
    assert later.mark is None
    assert inside["public_seeds"] == []


def test_the_share_held_out_is_that_of_the_model(tmp_path):
    first, _, _ = made(tmp_path, held_out=0.3)
    _, public, _ = made(tmp_path / "later", source=first.vault / "model", held_out=0.1)
    assert public["settings"]["held_out"] == 0.3


def test_a_model_that_does_not_say_its_seed_counts_as_public(tmp_path):
    first, _, _ = made(tmp_path)
    place = first.vault / "model" / "model.json"
    said = json.loads(place.read_text())
    assert said["about"].pop("public_seed") is False
    place.write_text(json.dumps(said))
    later, _, inside = made(tmp_path / "later", source=place.parent)
    assert inside["public_seeds"] == ["model"]
    assert failed(later.out) == ["no test seed"]


def test_the_printed_line_says_what_a_single_file_cannot(tmp_path, capfd):
    notes = write_csv(tmp_path / "notes.csv", rows_of())
    flags = ["--model", "unigram", "--count", "5", "--longest", "60", "--quiet"]
    assert main(["synthesize", str(notes), "-o", str(tmp_path / "a.csv"), "--seed", "3", *flags]) == 0
    said = capfd.readouterr().err.splitlines()[-1]
    assert said == (
        "TEST SEED: not for release (public seed of the notes and of the model); "
        "a.csv is of a kind that cannot say so itself"
    )
    model = str(tmp_path / "a.csv.vault" / "model")
    assert main(["synthesize", str(notes), "-o", str(tmp_path / "b.jsonl"), "--from", model, *flags]) == 0
    said = capfd.readouterr().err.splitlines()[-1]
    assert (
        said == "TEST SEED: not for release (public seed of the model); b.jsonl is of a kind that cannot say so itself"
    )


def test_the_mark(tmp_path):
    assert seed_mark([], tmp_path / "a.csv") is None
    for name, silent in (("a.csv", True), ("a.jsonl.gz", True), ("a.parquet", False), ("a", False)):
        assert ("cannot say so" in str(seed_mark(["notes"], tmp_path / name))) == silent


def test_the_share_of_unknown_words_is_said(finished, tmp_path):
    _, public, inside = finished
    said = []
    run = synthesis(tmp_path, model="unigram", min_count=20, min_patients=1, say=said.append)
    found = {finding.measure: finding for finding in run.run()}
    words = [word for text in texts_in(run.out) for word in text.split()]
    share = words.count("<unk>") / len(words)
    # Nothing is below the floor of one patient, and still the model writes <unk>.
    assert any(line.startswith(f"0 of {len(words):,} words were below") for line in said)
    assert any(line.endswith(f"{words.count('<unk>'):,} are ({share:.1%})") for line in said)
    assert share > 0.05
    finding = found["release.unknown_words"]
    assert (finding.value, finding.n, finding.count) == (share, len(words), words.count("<unk>"))
    assert finding.detail["below_floor"] == 0
    for document in (public, inside):
        assert "release.unknown_words" in [f["measure"] for f in document["findings"]]
    assert public["counts"]["unknown_share"] == pytest.approx(public["counts"]["unknown"] / public["counts"]["words"])


def test_a_gate_without_power_says_so(finished):
    run, public, _ = finished
    gate = public["gates"][-1]
    assert (gate["passed"], gate["value"], gate["threshold"]) == (True, 0, 0)
    assert gate["power"].startswith("No power: no pair of known name parts occurs in the notes")
    assert "No power: no pair of known name parts" in (run.out / "README.md").read_text()
    finding = next(f for f in public["findings"] if f["measure"] == "attack.known_names")
    assert finding["detail"]["warning"].startswith("No power")


def test_small_counts_of_names_are_hidden_in_the_card(finished):
    from clinveil.report.record import Gate

    told = []

    class Run(Synthesis):
        def _keep(self, made, account):
            told.append((made, account))
            super()._keep(made, account)

    made(finished[0].out.parent / "hidden", of=Run)
    ((product, account),) = told
    gate = Gate("a gate", "Is it?", passed=True, value=3, threshold=40, meaning="M", remedy="R", unit="names")
    card = product.card(replace(account, gates=[gate]), {})
    assert r"| a gate | \<11 | 40 | passed |" in card
    few = Finding("attack.known_names", 3, 400, "lower", control=2.5, unit="known full names", count=3)
    said = json.dumps(replace(account, gates=[gate], findings=[few]).manifest("external", {}))
    assert '"value": "<11"' in said and '"value": 3' not in said and '"count": 3' not in said and "2.5" not in said


def left(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("vault", ["absent", "empty"])
def test_a_refused_run_leaves_no_key(vault, finished, tmp_path, capfd):
    """Another's model, no model, too few patients, no feed, no such device: nothing was made, so nothing is left."""
    notes = write_csv(tmp_path / "notes.csv", notes_with())
    other = write_csv(tmp_path / "other.csv", rows_of(seed=5))
    few = write_csv(tmp_path / "few.csv", rows_of(3))
    model, here = str(finished[0].vault / "model"), str(tmp_path)
    cases = [(other, ["--from", model]), (notes, ["--from", here]), (notes, ["--from", "nowhere"])]
    cases += [(few, ["--model", "unigram"]), (notes, ["--model", "unigram", "--patients", "nowhere.parquet"])]
    cases += [(notes, ["--from", model, "--patients", str(other)]), (notes, ["--device", "abacus"])]
    if vault == "empty":
        (tmp_path / "o.vault").mkdir(mode=0o700)
    before = left(tmp_path)
    for source, flags in cases:
        assert main(["synthesize", str(source), "-o", str(tmp_path / "o"), "--count", "3", "--quiet", *flags]) > 1
        assert left(tmp_path) == before, flags
    assert SECRET not in capfd.readouterr().err
    if vault == "empty":
        assert left(tmp_path / "o.vault") == []


def test_a_late_refusal_leaves_no_key_either(tmp_path):
    """Found in the vocabulary or in writing, but before there is a model or a manifest."""
    run = synthesis(tmp_path, of=with_model(Always))
    with pytest.raises(Exception, match="empty notes only"):
        run.run()
    assert left(tmp_path) == []


def test_a_refusal_takes_nothing_from_an_earlier_vault(finished, tmp_path):
    """--force starts over only once nothing speaks against it."""
    made(tmp_path)
    before = bytes_of(tmp_path)
    changes = [{"source": tmp_path / "nowhere"}, {"notes": notes_of(rows_of(3))}, {"patients": tmp_path / "nowhere"}]
    changes += [{"source": finished[0].vault / "model", "notes": notes_of(rows_of(seed=5))}]
    for changed in changes:
        with pytest.raises(Exception, match=r"model\.json|too few|nowhere|other notes"):
            made(tmp_path, force=True, **changed)
        assert bytes_of(tmp_path) == before


def test_a_missing_library_takes_nothing_from_an_earlier_vault(tmp_path, monkeypatch):
    made(tmp_path)
    before = bytes_of(tmp_path)
    monkeypatch.setattr("clinveil.lm.vocabulary.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="tokenizers"):
        made(tmp_path, force=True, vocabulary="bytes", model="lstm")
    assert bytes_of(tmp_path) == before


def test_a_foreign_folder_is_left_alone(tmp_path):
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "mine.txt").write_text("mine")
    with pytest.raises(Exception, match="no vault of this command"):
        made(tmp_path)
    assert bytes_of(tmp_path) == {"vault/mine.txt": b"mine"}


def test_what_a_stop_leaves_is_kept(tmp_path):
    """Stopped once there is a model, its key stays: the same command goes on under it."""

    def stop(line):
        if "notes written" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        synthesis(tmp_path, model="unigram", seed=None, say=stop).run()
    key = (tmp_path / "vault" / "key.bin").read_bytes()
    run = synthesis(tmp_path, model="unigram", seed=None)
    run.run()
    assert (run.vault / "key.bin").read_bytes() == key
