"""Runs of `synthesize`: the same for any batch, taken up after a kill, other settings refused, and what is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest
from synthesis_cases import FAST, bytes_of, notes_of, open_to_others, rows_of, synthesis, texts_in

from clinveil.core.errors import InputError, UsageError
from clinveil.core.keys import TEST_SEED
from clinveil.lm.model import load_model

pytest.importorskip("torch", reason="the extra [neural] is not installed")
pytest.importorskip("safetensors", reason="the extra [neural] is not installed")


class Killed(Exception):
    """A run that was cut off."""


def killed_at(words):
    def say(line):
        if words in line:
            raise Killed

    return say


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A run that nothing cut off: folder, findings, and what was said."""
    folder, said = tmp_path_factory.mktemp("whole"), []
    before = os.umask(0o022)
    try:
        found = synthesis(folder, out="out.parquet", say=said.append).run()
    finally:
        os.umask(before)
    return folder, found, said


def test_what_a_run_leaves(whole_run):
    folder, _, _ = whole_run
    assert sorted(bytes_of(folder)) == sorted(
        ["out.parquet", *(f"vault/{name}" for name in ("README.txt", "key.bin", "manifest.json", "run.json"))]
        + [f"vault/model/{name}" for name in ("SECRET.txt", "model.json", "model.safetensors", "vocabulary.json")]
    )
    assert open_to_others(folder / "vault") == open_to_others(folder / "out.parquet") == []


def test_counts_add_up(whole_run):
    folder, found, said = whole_run
    manifest = json.loads((folder / "vault" / "manifest.json").read_text())
    table, counts = pq.read_table(folder / "out.parquet"), manifest["notes"]
    texts = table["text"].to_pylist()
    assert table.column_names == ["note_id", "text"]
    assert table["note_id"].to_pylist() == [f"synthetic-{i:06d}" for i in range(1, 26)]
    assert counts["notes"] == len(texts) == 25
    assert counts["words"] == sum(len(text.split()) for text in texts)
    unknown = sum(text.split().count("<unk>") for text in texts)
    assert 0 < counts["words_below_floor"] <= unknown
    truncated = next(f for f in found if f.measure == "release.truncated_notes")
    assert truncated.value == counts["truncated"] / 25
    assert truncated.detail["without_a_word"] == counts["empty"]
    assert any(f"25 notes, {counts['words']:,} words" in line for line in said)
    assert {name: manifest["model"][name] for name in ("kind", "trained")} == {"kind": "lstm", "trained": "in this run"}
    assert len(manifest["gates"]) == 4
    assert all(gate["passed"] for gate in manifest["gates"])
    assert [f["measure"] for f in manifest["findings"]] == [f.measure for f in found]


def test_a_test_seed_is_said_where_it_can_be(whole_run, tmp_path):
    folder, _, _ = whole_run
    assert pq.read_schema(folder / "out.parquet").metadata[b"clinveil"].decode() == TEST_SEED
    assert json.loads((folder / "vault" / "manifest.json").read_text())["warning"] == TEST_SEED
    run = synthesis(tmp_path, out="out.parquet", model="unigram", seed=None)
    run.run()
    assert b"clinveil" not in (pq.read_schema(run.out).metadata or {})
    assert "warning" not in json.loads((run.vault / "manifest.json").read_text())


def test_words_of_few_patients_and_numbers_are_unknown(whole_run):
    written = " ".join(texts_in(whole_run[0] / "out.parquet")).split()
    assert "<unk>" in written
    assert not [w for w in written if w.startswith("rare") or w.isdigit()]


def test_the_same_seed_gives_the_same_files(whole_run, tmp_path):
    folder, _, _ = whole_run
    run = synthesis(tmp_path, out="out.parquet")
    run.run()
    assert run.out.read_bytes() == (folder / "out.parquet").read_bytes()
    weights = "model/model.safetensors"
    assert (run.vault / weights).read_bytes() == (folder / "vault" / weights).read_bytes()


def test_another_seed_and_no_seed_give_others(whole_run, tmp_path):
    notes = {tuple(texts_in(whole_run[0] / "out.parquet"))}
    for name, seed in (("a", 4), ("b", None), ("c", None)):
        run = synthesis(tmp_path, out=name + ".csv", vault=name, seed=seed, epochs=1)
        run.run()
        notes.add(tuple(texts_in(run.out)))
    assert len(notes) == 4


@pytest.mark.parametrize("batch", [1, 7])
def test_notes_are_the_same_for_any_batch(batch, whole_run):
    """The vault's model again: a finished run whose OUT is elsewhere writes the same notes."""
    folder, _, _ = whole_run
    run = synthesis(folder, out=f"batch-{batch}.csv", batch=batch)
    run.run()
    assert texts_in(run.out) == texts_in(folder / "out.parquet")


@pytest.mark.parametrize(
    ("model", "more"),
    [("gpt", {"width": 16, "layers": 1, "heads": 2, "rate": 1e-2}), ("unigram", {})],
)
def test_other_models_write_the_same_for_any_batch(model, more, tmp_path):
    notes = []
    for batch in (1, 7, 64):
        run = synthesis(tmp_path, out=f"{batch}.csv", batch=batch, model=model, epochs=1, **more)
        run.run()
        notes.append(texts_in(run.out))
    assert notes[0] == notes[1] == notes[2]
    assert len(set(notes[0])) > 20


def goes_on(folder, whole_run, **changed):
    said = []
    run = synthesis(folder, out="out.parquet", say=said.append, **changed)
    run.run()
    for name in ("out.parquet", "vault/model/model.safetensors"):
        assert (folder / name).read_bytes() == (whole_run[0] / name).read_bytes(), name
    assert not (run.vault / "training.safetensors").exists()
    return said


def test_cut_off_in_training_it_goes_on_to_the_same_bits(whole_run, tmp_path):
    with pytest.raises(Killed):
        synthesis(tmp_path, out="out.parquet", say=killed_at("pass 2 of 2")).run()
    assert [path.name for path in tmp_path.iterdir()] == ["vault"]
    assert (tmp_path / "vault" / "training.safetensors").exists()
    assert open_to_others(tmp_path / "vault") == []
    said = goes_on(tmp_path, whole_run)
    assert any("going on after step" in line for line in said)


@pytest.mark.parametrize("words", ["kept aside", "below the rare-word floor", "passed  no long copies"])
def test_cut_off_elsewhere_it_goes_on_to_the_same_bits(words, whole_run, tmp_path):
    with pytest.raises(Killed):
        synthesis(tmp_path, out="out.parquet", say=killed_at(words)).run()
    # Before anything was made, the key goes too.
    assert [path.name for path in tmp_path.iterdir()] == ([] if words == "kept aside" else ["vault"])
    goes_on(tmp_path, whole_run)


def test_a_secret_run_that_was_cut_off_keeps_its_key(tmp_path):
    with pytest.raises(Killed):
        synthesis(tmp_path, seed=None, say=killed_at("pass 2 of 2")).run()
    before = bytes_of(tmp_path / "vault")
    run = synthesis(tmp_path, seed=None)
    run.run()
    after = bytes_of(run.vault)
    assert after["key.bin"] == before["key.bin"]
    assert json.loads(after["run.json"])["run"] == json.loads(before["run.json"])["run"]
    notes = run.out.read_bytes()
    run.out.unlink()
    synthesis(tmp_path, seed=None).run()
    assert run.out.read_bytes() == notes


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from synthesis_cases import synthesis
synthesis(Path(sys.argv[2]), out="out.parquet", epochs=12).run()
"""


def test_a_killed_process_goes_on_to_the_same_bits(tmp_path):
    here = os.path.dirname(__file__)
    (tmp_path / "killed").mkdir()
    process = subprocess.Popen([sys.executable, "-c", KILLED, here, str(tmp_path / "killed")])
    state = tmp_path / "killed" / "vault" / "training.safetensors"
    while process.poll() is None and not state.exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed" / "vault" / "model" / "model.json").exists()
    said = []
    runs = [synthesis(tmp_path / "killed", out="out.parquet", epochs=12, say=said.append)]
    runs += [synthesis(tmp_path, out="out.parquet", epochs=12)]
    for run in runs:
        run.run()
    assert any("going on after step" in line for line in said)
    assert runs[0].out.read_bytes() == runs[1].out.read_bytes()


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unfinished")
    with pytest.raises(Killed):
        synthesis(folder, say=killed_at("pass 2 of 2")).run()
    return folder


OTHERS = {"epochs": 3, "seed": 4, "min_patients": 4, "count": 24, "held_out": 0.2, "model": "gpt", "temperature": 0.9}


@pytest.mark.parametrize("changed", [{name: value} for name, value in OTHERS.items()], ids=list(OTHERS))
def test_other_settings_are_refused_and_nothing_is_lost(changed, unfinished):
    before = bytes_of(unfinished)
    with pytest.raises(UsageError, match="unfinished run of other notes or settings") as caught:
        synthesis(unfinished, **changed).run()
    assert "\n" not in str(caught.value)
    assert bytes_of(unfinished) == before


def test_other_notes_or_another_model_are_refused_and_nothing_is_lost(unfinished, whole_run):
    before = bytes_of(unfinished)
    rows = rows_of()
    others = [
        rows[1:],
        [*rows[:-1], (*rows[-1][:2], "Other words.")],
        [(n, "p0" if n == "n1-0" else p, t) for n, p, t in rows],
    ]
    for other in others:
        with pytest.raises(UsageError, match="other notes or settings"):
            synthesis(unfinished, notes=notes_of(other)).run()
    with pytest.raises(UsageError, match="other notes or settings"):
        synthesis(unfinished, source=whole_run[0] / "vault" / "model").run()
    assert bytes_of(unfinished) == before


def test_places_that_are_taken(whole_run, tmp_path):
    folder, _, _ = whole_run
    with pytest.raises(UsageError, match="finished run"):
        synthesis(folder, out="out.parquet").run()
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "mine.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(UsageError, match="no vault of this command"):
            synthesis(tmp_path, force=force).run()
    assert bytes_of(tmp_path) == {"vault/mine.txt": b"mine"}


def test_force_starts_over_under_another_key(tmp_path):
    keys, notes = set(), set()
    for force in (False, True):
        run = synthesis(tmp_path, model="unigram", seed=None, force=force)
        run.run()
        keys.add((run.vault / "key.bin").read_bytes())
        notes.add(tuple(texts_in(run.out)))
    assert len(keys) == len(notes) == 2


def test_with_a_model_that_was_trained_before(whole_run, tmp_path):
    folder, _, _ = whole_run
    before = bytes_of(folder / "vault")
    run = synthesis(tmp_path, source=folder / "vault" / "model", count=5)
    run.run()
    assert texts_in(run.out) == texts_in(folder / "out.parquet")[:5]  # the same public key
    assert not (run.vault / "model").exists()
    assert json.loads((run.vault / "manifest.json").read_text())["model"]["trained"] == "before"
    other = synthesis(tmp_path, out="b.csv", vault="b", source=folder / "vault" / "model", count=5, seed=8)
    other.run()
    assert texts_in(other.out) != texts_in(run.out)
    assert bytes_of(folder / "vault") == before


def test_a_model_of_other_notes_is_refused(whole_run, tmp_path):
    rows = rows_of()
    for name, other in (("a", rows_of(seed=1)), ("b", rows[:-1]), ("c", [*rows, ("new", "new", "Fevera.")])):
        with pytest.raises(InputError, match="model: was trained on other notes") as caught:
            synthesis(
                tmp_path, out=name, vault=name + "v", notes=notes_of(other), source=whole_run[0] / "vault/model"
            ).run()
        assert "fevera" not in str(caught.value).casefold()
        assert not (tmp_path / name).exists()
    turned = synthesis(tmp_path, notes=notes_of(rows[::-1]), source=whole_run[0] / "vault" / "model", count=5)
    turned.run()  # another order is not other notes
    assert len(texts_in(turned.out)) == 5


@pytest.mark.parametrize("split", [None, 3, {}, {"seed": 1}, {"seed": 1, "share": 0.1}])
def test_a_model_that_does_not_say_whom_it_saw_is_refused(split, whole_run, tmp_path):
    from clinveil.lm.model import save_model

    model, _ = load_model(whole_run[0] / "vault" / "model")
    save_model(model, tmp_path / "m", {"split": split})
    with pytest.raises(UsageError, match="whom it was trained on"):
        synthesis(tmp_path, source=tmp_path / "m").run()


def test_something_else_is_no_model(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "nowhere"):
        with pytest.raises(InputError, match=r"has no readable model\.json"):
            synthesis(tmp_path, vault=name + "v", source=tmp_path / name).run()


def test_until_there_are_as_many_words_as_in_training(tmp_path):
    run = synthesis(tmp_path, model="unigram", count=None)
    run.run()
    counts = json.loads((run.vault / "manifest.json").read_text())["notes"]
    wanted = sum(len(text.split()) for text in notes_of(rows_of()).texts)
    last = len(texts_in(run.out)[-1].split())
    # A tenth of the patients were kept aside.
    assert 0.85 * wanted < counts["words"] < 0.95 * wanted + last


def test_byte_pairs_cannot_spell_a_rare_word(tmp_path):
    pytest.importorskip("tokenizers", reason="the extra [neural] is not installed")
    run = synthesis(tmp_path, vocabulary="bytes", vocabulary_size=400, longest=200, epochs=1)
    run.run()
    kept = {w for text in run.notes.texts for w in text.split() if not w.startswith("rare") and not w.isdigit()}
    written = {w for text in texts_in(run.out) for w in text.split()}
    assert written <= kept | {"<unk>"}
    assert len(written) > 5


def test_a_training_that_fails_keeps_its_last_state(tmp_path):
    with pytest.raises(InputError, match=r"at step \d+ of \d+, learning rate [\de.+]+ \(a smaller --rate\)"):
        synthesis(tmp_path, rate=1e6).run()
    assert not (tmp_path / "out.csv").exists()
    assert not (tmp_path / "vault" / "model").exists()
    synthesis(tmp_path, epochs=1).run()  # nothing was made that other settings could lose


def test_a_loss_that_fails_late_keeps_the_state_of_the_pass_before(tmp_path):
    """Weights without a number are never written; the last good ones stay and can be gone on from."""
    with pytest.raises(Killed):
        synthesis(tmp_path, say=killed_at("pass 2")).run()
    state = tmp_path / "vault" / "training.safetensors"
    kept = state.read_bytes()
    with pytest.raises(UsageError, match="other notes or settings"):
        synthesis(tmp_path, rate=1e6).run()
    assert state.read_bytes() == kept


def test_too_few_patients(tmp_path):
    for n in (1, 3):
        with pytest.raises(InputError, match=f"{n} patients are too few"):
            synthesis(tmp_path, notes=notes_of(rows_of(n)), vault=f"v{n}").run()


def test_settings_of_this_file_are_fast():
    assert FAST["epochs"] * FAST["width"] <= 32
