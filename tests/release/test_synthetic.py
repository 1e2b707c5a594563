"""Synthetic releases with small networks: the same notes for any batch, resumed after a stop,
refused for copies.
"""

from __future__ import annotations

import json
import re
import shlex

import pytest
from synthesis_cases import Always, Copying, rows_of, texts_in, with_model, write_csv, written

pytest.importorskip("torch", reason="the extra [neural] is not installed")
pytest.importorskip("safetensors", reason="the extra [neural] is not installed")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with notes, and one seeded release that nothing interrupted: it ends in
    `vault/refused`.
    """
    folder = tmp_path_factory.mktemp("synthetic")
    write_csv(folder / "notes.csv", rows_of())
    assert written(folder, "whole", "--seed", "3") == 4
    return folder


def refused(desk, out):
    return (desk / out / "vault" / "refused" / "notes.csv").read_bytes()


def test_counts_add_up_and_rare_words_are_left_out(desk):
    made = json.loads((desk / "whole/vault/manifest.json").read_text())
    texts = texts_in(desk / "whole/vault/refused/notes.csv")
    counts = made["counts"]
    all_words = " ".join(texts).split()
    assert (counts["notes"], counts["words"]) == (25, len(all_words))
    assert not [word for word in all_words if word.startswith("rare") or "unk" in word]
    assert [gate["name"] for gate in made["gates"] if not gate["passed"]] == ["no test seed"]
    assert made["public_seeds"] == ["notes", "model"] and made["test_seed"]
    assert not (desk / "whole/vault/training.safetensors").exists()


def test_another_batch_size_writes_the_same_notes(desk):
    assert written(desk, "batch", "--seed", "3", "--set", "synthetic.batch=7") == 4
    assert refused(desk, "batch") == refused(desk, "whole")


@pytest.mark.parametrize("words", ["epoch 2 of 2", "25 notes written"])
def test_an_interrupted_run_goes_on_to_the_same_bytes(desk, words, monkeypatch):
    from clinveil.cli.progress import Speaker

    def say(self, line):
        if words in line:
            raise KeyboardInterrupt

    out = words[:2]
    with monkeypatch.context() as patch:
        patch.setattr(Speaker, "__call__", say)
        assert written(desk, out, "--seed", "3") == 130
    vault = desk / out / "vault"
    assert (vault / "training.safetensors").exists() or (vault / "model/model.json").exists()
    assert written(desk, out, "--seed", "3") == 4
    assert refused(desk, out) == refused(desk, "whole")


@pytest.mark.parametrize("parts", [1, 2])
def test_a_reused_model_meets_the_surrogates_that_it_was_trained_on(desk, parts):
    rows = [
        (note, patient, f"Patient name: Joan Okafor, seen 3 May 2019. {text}")
        for note, patient, text in rows_of()
    ]
    notes = f"named-{parts}"
    (desk / notes).mkdir()
    for part in range(parts):
        write_csv(desk / notes / f"{part}.csv", rows[part::parts])
    assert (
        written(desk, f"{notes}-out", "--set", "phi=true", "--set", "lm.model=unigram", notes=notes)
        == 0
    )
    vault = str(desk / f"{notes}-out/vault")
    assert written(desk, f"{notes}-again", "--set", "phi=true", "--reuse", vault, notes=notes) == 0


def test_identifiers_are_surrogates_in_the_tags_that_were_asked_for(desk, capsys):
    rows = [
        (note, patient, f"Patient name: Joan Okafor, seen 3 May 2019. {text}")
        for note, patient, text in rows_of()
    ]
    write_csv(desk / "tagged.csv", rows)
    flags = shlex.split("--set phi=true --set lm.model=ngram --seed 1 --set synthetic.tags=true")
    assert written(desk, "tagged", *flags, notes="tagged.csv") == 4
    assert "no test seed" in capsys.readouterr().out
    texts = texts_in(desk / "tagged/vault/refused/notes.csv")
    found = [pair for text in texts for pair in re.findall(r"<(NAME|DATE)>([^<]+)</\1>", text)]
    assert {label for label, _ in found} == {"NAME", "DATE"} and len(
        {value for _, value in found}
    ) > 20
    assert not re.search("okafor|[\ue000-\uf8ff]", " ".join(texts).lower())
    assert written(desk, "never", *flags, "--set", "phi=false", notes="tagged.csv") == 2
    assert "synthetic.tags requires phi=true" in capsys.readouterr().err


def test_a_model_that_copies_lets_nothing_out(desk, monkeypatch, capsys):
    with_model(monkeypatch, Copying)
    assert (
        written(desk, "copied", "--set", "synthetic.longest=500", "--set", "synthetic.span=10") == 4
    )
    assert "NOT HELD no long copies" in capsys.readouterr().out
    assert not (desk / "copied/release").exists() and not (desk / "copied/vault/refused").exists()


def test_models_that_never_begin_or_never_end(desk, monkeypatch, capsys):
    with_model(monkeypatch, Always)
    assert written(desk, "empty", "--seed", "1") == 3
    assert "only empty notes" in capsys.readouterr().err
    with_model(monkeypatch, lambda notes: Always(notes, 3))
    more = ["--set", "synthetic.count=5", "--set", "synthetic.longest=12", "--seed", "1"]
    assert written(desk, "endless", *more) == 4
    assert [len(text.split()) for text in texts_in(desk / "endless/vault/refused/notes.csv")] == [
        12
    ] * 5
    assert "enough different words" in capsys.readouterr().out


def test_too_few_patients_are_an_input_error(tmp_path, capsys):
    write_csv(tmp_path / "notes.csv", rows_of(patients=3))
    assert written(tmp_path, "out") == 3
    assert "3 patients are too few" in capsys.readouterr().err and not (tmp_path / "out").exists()
