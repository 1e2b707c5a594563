"""`clinveil synthesize` and `evaluate perplexity` from the command line: formats, places, refusals, what is said."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from synthesis_cases import COMMON, FAST_FLAGS, bytes_of, notes_of, open_to_others, rows_of, texts_in, write_csv

from clinveil.cli.main import main
from clinveil.core.errors import InputError
from clinveil.core.files import locked, private_folder
from clinveil.corpus.people import Patient, write_patients
from clinveil.lm.model import Fit, fit_of, load_model
from clinveil.lm.models.unigram import train_unigram
from clinveil.lm.notes import encode
from clinveil.lm.train import make_vocabulary
from clinveil.releases.settings import SynthesisSettings
from clinveil.utility.perplexity import perplexity_findings

UNIGRAM = ["--model", "unigram", "--count", "25", "--longest", "60"]
SECRET = "zyqquavex"


@pytest.fixture(autouse=True)
def _umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """Notes with an invented word in every one of them: no floor takes it, and no message may hold it."""
    rows = [(note, patient, f"{text} {SECRET} {SECRET}.") for note, patient, text in rows_of()]
    return write_csv(tmp_path_factory.mktemp("notes") / "notes.csv", rows)


@pytest.fixture(scope="module")
def written(notes):
    """A finished run with a network: its folder."""
    pytest.importorskip("torch", reason="the extra [neural] is not installed")
    folder = notes.parent / "written"
    folder.mkdir()
    assert main(["synthesize", str(notes), "-o", str(folder / "out"), *FAST_FLAGS, "--quiet"]) == 0
    return folder


def run(*arguments):
    return main(["synthesize", *map(str, arguments)])


def test_formats_by_suffix(notes, tmp_path, capfd):
    texts = []
    for name in ("a.csv", "a.jsonl", "a.parquet", "a.csv.gz", "a"):
        assert run(notes, "-o", tmp_path / name, *UNIGRAM, "--seed", 2) == 0
        texts.append(texts_in(tmp_path / name))
    assert all(texts[0] == other for other in texts)
    assert {p.name for p in (tmp_path / "a").iterdir()} == {"notes.parquet", "README.md", "manifest.json", "SHA256SUMS"}
    assert open_to_others(tmp_path) in ([], [tmp_path.name])
    assert "TEST SEED: not for release" in capfd.readouterr().err


def test_nothing_of_the_notes_is_said(notes, written, tmp_path, capfd):
    """Messages, findings and the vault's own records; in what is written the word stands, as it is everybody's."""
    assert run(notes, "-o", tmp_path / "o.csv", *UNIGRAM, "--json", tmp_path / "f.json") == 0
    assert run(notes, "-o", tmp_path / "p.csv", *UNIGRAM) == 0
    said = capfd.readouterr()
    assert SECRET in " ".join(texts_in(tmp_path / "o.csv"))
    assert "rare-word floor" in said.err
    assert "TEST SEED" not in said.err
    records = [tmp_path / "f.json", tmp_path / "o.csv.vault" / "manifest.json", tmp_path / "o.csv.vault" / "run.json"]
    records += [written / "out.vault" / name for name in ("manifest.json", "run.json", "model/model.json")]
    words = {*COMMON, SECRET, "rareaa", "70003"}
    for text in (said.out, said.err, *(path.read_text() for path in records)):
        assert not [word for word in words if word in text.casefold()]


def test_the_findings_do_not_hold_the_seed_of_a_secret_run(notes, tmp_path):
    assert run(notes, "-o", tmp_path / "o.csv", *UNIGRAM, "--json", tmp_path / "f.json", "--quiet") == 0
    secret = json.loads((tmp_path / "o.csv.vault" / "manifest.json").read_text())
    said = json.loads((tmp_path / "f.json").read_text())
    assert said["seed"] == 0
    for value in (secret["training_seed"], secret["key_commitment"]):
        assert str(value) not in (tmp_path / "f.json").read_text()


def places(folder):
    """A folder with notes, an OUT, a vault's parent and a model beside them."""
    write_csv(folder / "notes.csv", rows_of(6))
    (folder / "inner").mkdir()
    write_csv(folder / "inner" / "notes.csv", rows_of(6))
    (folder / "model").mkdir()
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["notes.csv", "-o", "notes.csv", "--force"],
        ["inner/notes.csv", "-o", "inner", "--force"],
        ["inner/notes.csv", "-o", "o", "--vault", "inner"],
        ["notes.csv", "-o", "v/o", "--vault", "v"],
        ["notes.csv", "-o", "o", "--vault", "o/v"],
        ["notes.csv", "-o", "o", "--vault", "o"],
        ["notes.csv", "-o", "model", "--from", "model", "--force"],
        ["notes.csv", "-o", "model/o", "--from", "model"],
        ["notes.csv", "-o", "o", "--vault", "model", "--from", "model", "--force"],
        ["notes.csv", "-o", "o", "--vault", ".", "--from", "model", "--force"],
        ["notes.csv", "-o", "inner/notes.csv", "--patients", "inner/notes.csv", "--force"],
    ],
)
def test_places_that_would_destroy_one_another_are_refused(arguments, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(places(tmp_path))
    before = bytes_of(tmp_path)
    assert run(*arguments, *UNIGRAM) == 2
    assert bytes_of(tmp_path) == before
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_the_model_of_the_same_vault_is_not_removed_by_force(notes, written, capfd):
    """It lies in the vault that --force starts anew."""
    before = bytes_of(written)
    assert run(notes, "-o", written / "out", "--from", written / "out.vault" / "model", "--force") == 2
    assert bytes_of(written) == before
    assert "--from lies inside the vault" in capfd.readouterr().err


def test_an_out_that_is_taken(notes, tmp_path, capfd):
    (tmp_path / "o.csv").write_text("mine")
    assert run(notes, "-o", tmp_path / "o.csv", *UNIGRAM) == 2
    assert bytes_of(tmp_path) == {"o.csv": b"mine"}
    assert "is there already" in capfd.readouterr().err
    assert run(notes, "-o", tmp_path / "o.csv", *UNIGRAM, "--force") == 0
    assert len(texts_in(tmp_path / "o.csv")) == 25
    assert run(notes, "-o", tmp_path / "o.csv", *UNIGRAM) == 2


def test_one_run_at_a_time(notes, tmp_path, capfd):
    with locked(private_folder(tmp_path / "o.csv.vault") / "lock"):
        assert run(notes, "-o", tmp_path / "o.csv", *UNIGRAM) == 2
    assert "another run is at work" in capfd.readouterr().err
    assert run(notes, "-o", tmp_path / "o.csv", *UNIGRAM) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["o.csv", "o.csv.vault"]


def test_with_the_model_of_an_earlier_run(notes, written, tmp_path, capfd):
    model = written / "out.vault" / "model"
    assert run(notes, "-o", tmp_path / "more.csv", "--from", model, "--count", 3, "--longest", 60) == 0
    assert len(texts_in(tmp_path / "more.csv")) == 3
    other = write_csv(tmp_path / "other.csv", rows_of(seed=5))
    capfd.readouterr()
    assert run(other, "-o", tmp_path / "never", "--from", model, "--count", 3) == 3
    said = capfd.readouterr().err
    assert said == (
        "clinveil: model: was trained on other notes than these "
        "(the notes of that run, read the same way; or train anew, without --from)\n"
    )
    assert run(notes, "-o", tmp_path / "never", "--from", written / "out") == 3
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("name", ["model.json", "model.safetensors", "vocabulary.json"])
def test_a_damaged_model_is_one_line(name, notes, written, tmp_path, capfd):
    folder = tmp_path / "model"
    folder.mkdir()
    for path, data in bytes_of(written / "out.vault" / "model").items():
        (folder / path).write_bytes(data[: len(data) // 2] if path == name else data)
    assert run(notes, "-o", tmp_path / "o", "--from", folder, "--count", 3) == 3
    assert main(["evaluate", "perplexity", str(notes), "--from", str(folder)]) == 3
    said = capfd.readouterr().err
    assert len(said.splitlines()) == 2
    assert SECRET not in said
    assert not (tmp_path / "o").exists()


def hidden(monkeypatch, *names):
    """As if these libraries were not installed."""
    import importlib.util

    real = importlib.util.find_spec
    for module in ("clinveil.core.neural", "clinveil.lm.vocabulary"):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: None if name in names else real(name))


@pytest.mark.parametrize(
    "command",
    [
        ["synthesize", "NOTES", "-o", "never"],
        ["evaluate", "perplexity", "NOTES", "--train", "NOTES"],
        ["attack", "canaries", "NOTES"],
        ["attack", "leaveout", "NOTES", "-o", "never"],
        ["attack", "membership", "NOTES", "NOTES", "--from", "MODEL"],
        ["synthesize", "NOTES", "-o", "never", "--from", "MODEL"],
        ["evaluate", "perplexity", "NOTES", "--from", "MODEL"],
    ],
)
def test_without_pytorch_the_pip_line_is_said(command, notes, written, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    hidden(monkeypatch, "torch")
    known = {"NOTES": str(notes), "MODEL": str(written / "out.vault" / "model")}
    assert main([known.get(part, part) for part in command]) == 6
    assert capfd.readouterr().err.splitlines()[-1] == (
        "clinveil: PyTorch is not installed (pip install 'clinveil[neural]')"
    )
    assert not (tmp_path / "never").exists()


def test_counting_needs_no_pytorch(notes, tmp_path, monkeypatch):
    hidden(monkeypatch, "torch", "tokenizers")
    assert run(notes, "-o", tmp_path / "o.csv", *UNIGRAM, "--quiet") == 0
    model = str(tmp_path / "o.csv.vault" / "model")
    assert main(["evaluate", "perplexity", str(notes), "--from", model]) == 0
    assert run(notes, "-o", tmp_path / "p.csv", "--from", model, "--count", 3, "--quiet") == 0


def test_without_tokenizers_the_pip_line_is_said(notes, tmp_path, monkeypatch, capfd):
    hidden(monkeypatch, "tokenizers")
    assert run(notes, "-o", tmp_path / "o", "--quiet") == 6
    assert main(["attack", "canaries", str(notes), "--quiet"]) == 6
    line = "clinveil: tokenizers is not installed (pip install 'clinveil[neural]')\n"
    assert capfd.readouterr().err == line * 2
    # Nothing was made, so other settings may follow in the same place.
    assert run(notes, "-o", tmp_path / "o", *UNIGRAM, "--quiet") == 0


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--model", "ngram"], 2, "scores notes and writes none"),
        (["--model", "gpt", "--size", "paper"], 2, "--model gpt has no --size paper"),
        (["--model", "gpt", "--plan", "stream"], 2, "--plan stream is the LSTM's"),
        (["--temperature", "0"], 2, "temperature"),
        (["--top-p", "1.1"], 2, "top"),
        (["--count", "0"], 2, "count"),
        (["--device", "abacus"], 2, "no such device"),
        (["--patients", "nowhere.parquet", *UNIGRAM], 3, "nowhere.parquet"),
        (["--rate", "1e6"], 3, "learning rate 1e+06"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(flags, code, said, notes, tmp_path, monkeypatch, capfd):
    if code == 3 and "--rate" in flags:
        pytest.importorskip("torch", reason="the extra [neural] is not installed")
    monkeypatch.chdir(tmp_path)
    assert run(notes, "-o", "never", "--quiet", *FAST_FLAGS, *flags) == code
    last = capfd.readouterr().err.splitlines()[-1]
    assert said in last
    assert SECRET not in last
    assert not (tmp_path / "never").exists()


def test_names_that_the_model_knows_do_not_leave(tmp_path, capfd):
    """Two words that always stand together: an LSTM learns in seconds who belongs to whom."""
    pytest.importorskip("torch", reason="the extra [neural] is not installed")
    names = [("Adam", "Stone"), ("Berta", "River"), ("Clara", "Field"), ("David", "Brook")]
    texts = [" ".join(" ".join(names[(i + j) % 4]) + " rests." for j in (0, 2, 1, 3, 0, 1)) for i in range(12)]
    rows = [(f"n{i}", f"p{i}", texts[i % 12]) for i in range(30)]
    write_patients([Patient(f"k{i}", name) for i, name in enumerate(names)], tmp_path / "patients.parquet")
    flags = ["--optimizer", "adamw", "--rate", "0.02", "--dropout", "0", "--epochs", "20", "--span", "200"]
    feed = ["--patients", tmp_path / "patients.parquet"]
    notes = write_csv(tmp_path / "notes.csv", rows)
    assert run(notes, "-o", tmp_path / "o", *FAST_FLAGS, *flags, *feed) == 4
    said = capfd.readouterr().err
    assert "known names no more often than made-up ones" in said.splitlines()[-1]
    assert not any(word.lower() in said.lower() for name in names for word in name)
    assert not (tmp_path / "o").exists()
    assert (tmp_path / "o.vault" / "model").exists()
    # Fail closed: the same run without the feed would be another one, and its model is kept from it.
    assert run(notes, "-o", tmp_path / "o", *FAST_FLAGS, *flags) == 2
    assert "other notes or settings" in capfd.readouterr().err
    assert not (tmp_path / "o").exists()


def perplexity(*arguments):
    return main(["evaluate", "perplexity", *map(str, arguments)])


def test_perplexity_of_a_unigram_against_arithmetic(notes, tmp_path):
    test = write_csv(tmp_path / "test.csv", rows_of(8, seed=2))
    out = tmp_path / "f.json"
    assert perplexity(test, "--train", notes, "--model", "unigram", "--json", out, "--seed", 1) == 0
    found = {f["measure"]: f for f in json.loads(out.read_text())["findings"]}
    rows = [(n, p, f"{t} {SECRET} {SECRET}.") for n, p, t in rows_of()]
    seen, other = notes_of(rows), notes_of(rows_of(8, seed=2))
    vocabulary = make_vocabulary(seen, SynthesisSettings(model="unigram").lm)
    counts = np.bincount(encode(seen.texts, vocabulary).ids, minlength=vocabulary.size) + 1.0
    ids = encode(other.texts, vocabulary).ids
    mean = -np.log(counts / counts.sum())[ids].mean()
    assert found["utility.perplexity"]["value"] == pytest.approx(math.exp(mean))
    characters = sum(len(text) + 1 for text in other.texts)
    words = [word for text in other.texts for word in text.split()]
    letters = sum(len(word) + 1 for word in words if word not in vocabulary.words)
    assert letters > 0
    bits = mean * ids.size / math.log(2) + letters * math.log2(len(set("".join(words))) + 1)
    assert found["utility.bits_per_character"]["value"] == pytest.approx(bits / characters)
    for one in found.values():
        assert one["control"] == pytest.approx(one["value"])  # the control is a unigram of the same notes
        assert one["low"] <= one["value"] <= one["high"]


def test_a_network_is_deterministic_and_knows_its_notes(notes, written, tmp_path):
    answers = []
    for name in ("a", "b"):
        assert perplexity(notes, "--from", written / "out.vault/model", "--json", tmp_path / name, "--seed", 1) == 0
        answers.append((tmp_path / name).read_bytes())
    assert answers[0] == answers[1]
    fit = fit_of(load_model(written / "out.vault/model")[0], encode(["fevera ."], train_words()))
    assert fit.perplexity > 1


def train_words():
    return make_vocabulary(notes_of(rows_of()), SynthesisSettings(model="unigram").lm)


def test_perplexity_wants_one_model(notes, written, tmp_path, capfd):
    model = written / "out.vault" / "model"
    assert perplexity(notes) == 2
    assert perplexity(notes, "--train", notes, "--from", model) == 2
    assert perplexity(notes, "--from", tmp_path / "nowhere") == 3
    assert perplexity(tmp_path / "nowhere.csv", "--from", model) == 3
    assert all(len(line) < 200 for line in capfd.readouterr().err.splitlines())


def test_the_folder_that_was_made_is_notes_everywhere(notes, written):
    assert perplexity(written / "out", "--train", notes, "--model", "unigram") == 0
    assert main(["inspect", str(written / "out")]) == 0


def test_a_perplexity_that_is_no_number_is_said():
    model = train_unigram(encode(["a b"], train_words()), train_words())
    for total in (-1e9, float("nan"), -np.inf):
        fit = Fit(np.array([total]), np.array([3]), np.array([9]))
        with pytest.raises(InputError, match="perplexity is no number"):
            perplexity_findings(model, fit, notes_of([("n", "p", "a b")]), "test")


def test_paths_of_this_machine_are_not_said(notes, tmp_path, capfd):
    assert run(notes, "-o", tmp_path / "o.csv", *UNIGRAM) == 0
    said = capfd.readouterr()
    assert str(Path(tmp_path)) not in said.out + said.err
