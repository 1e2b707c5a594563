"""A release with vectors of elsewhere, and with more to train on than its notes."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.cli import main
from clinveil.core import fingerprint
from clinveil.corpus import HeldOutPatients
from clinveil.vectors import Vectors, load_vectors, save_vectors
from no_limits import NO_LIMITS

FAST = shlex.split(
    "--workers 1 --quiet --set identifiers.language=any --set phi=false --again --as obfuscated"
    f" --limits {shlex.quote(str(NO_LIMITS))}"
    " --set channel.mechanism=neighbours"  # few words
)
WORDS = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(60)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Notes, vectors of most of their words as a folder with counts of elsewhere and as a file, and
    a release.
    """
    folder = tmp_path_factory.mktemp("desk")
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(WORDS, 40)) for _ in range(120)]
    ids = {
        "note_id": [f"n{i}" for i in range(120)],
        "patient_id": [f"p{i // 2}" for i in range(120)],
    }
    (folder / "demo").mkdir()
    pq.write_table(pa.table({**ids, "text": texts}), folder / "demo/notes.parquet")
    words = [*WORDS[:50], "elsewhere", "The"]
    theirs = np.full(52, 9_999, dtype=np.int64)
    matrix = rng.normal(size=(52, 12)).astype(np.float32)
    save_vectors(Vectors(words, matrix, theirs, theirs, 10_000), folder / "vectors")
    save_vectors(Vectors(words, matrix), folder / "v.vec")
    assert release(folder, "out", "--vectors", folder / "v.vec") == 0
    return folder


def release(folder, out, *flags):
    where = ["-o", str(folder / out)] if out else []  # without it, the plan is printed
    return main(["release", str(folder / "demo/notes.parquet"), *where, *FAST, *map(str, flags)])


def manifests(desk, out="out"):
    return [
        json.loads((desk / out / place / "manifest.json").read_text())
        for place in ("release", "vault")
    ]


def test_the_vault_has_the_rows_of_the_notes_with_their_figures(desk):
    vault = load_vectors(desk / "out/vault/vectors")
    given = load_vectors(desk / "v.vec")
    assert (len(vault), len(given)) == (50, 52)
    assert (vault.matrix == given.matrix[[given.ids[word] for word in vault.words]]).all()
    training = HeldOutPatients.read(desk / "out/vault").training
    assert vault.n_patients == len(training) == 51
    assert 0 < vault.patients.max() <= 51
    assert not any("vectors" in path.name for path in (desk / "out/release").rglob("*"))


def test_manifest_and_report_say_where_they_come_from(desk):
    for manifest in manifests(desk):
        assert manifest["vectors"] == {"from": "given, not trained on these notes", "passes": None}
    outward = (desk / "out/release/manifest.json").read_text()
    assert "v.vec" not in outward
    assert fingerprint(desk / "v.vec") not in outward, (
        "whoever looks for the file could know it by its hash"
    )
    for place in ("release", "vault"):
        report = (desk / "out" / place / "report.html").read_text()
        assert "so others may have the same file" in report
        assert "words without a vector" in report
    assert manifests(desk)[0]["tokens"]["unknown"] > 0


def test_a_folder_of_ours_makes_the_same_channel_but_for_the_key(desk):
    """The counts of elsewhere, which stand in the folder, change nothing."""
    assert release(desk, "again", "--vectors", desk / "vectors") == 0
    one, other = (load_vectors(desk / out / "vault/vectors") for out in ("out", "again"))
    assert {*one.words} == {*other.words}
    of_word = [other.ids[word] for word in one.words]
    assert np.allclose(one.matrix, other.matrix[of_word])
    assert other.n_patients == len(HeldOutPatients.read(desk / "again/vault").training)


def test_other_vectors_are_another_question(desk, capsys):
    (desk / "out/vault/state.json").touch()
    assert release(desk, "out", "--vectors", desk / "vectors") == 2
    assert release(desk, "out") == 2
    assert "clinveil: " in capsys.readouterr().err


def test_a_stopped_run_goes_on_with_the_vectors_it_has(desk, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("clinveil.releases.producers._channel.channel_of", stop)
        assert release(desk, "stopped", "--vectors", desk / "v.vec") != 0
    made = fingerprint(desk / "stopped/vault/vectors")
    assert release(desk, "stopped", "--vectors", desk / "v.vec") == 0
    assert fingerprint(desk / "stopped/vault/vectors") == made


@pytest.mark.parametrize(
    ("name", "content", "code", "said"),
    [
        ("foreign.vec", "3 2\ndas 1 2\nund 2 1\nnicht 1 1\n", 3, "only 0 of"),
        ("five.vec", "5 2\nwaa 1 2\nwab 2 1\nwac 1 1\nwad 2 2\nwae 3 1\n", 3, "only 5 of"),
        ("broken.vec", "3 2\na 1 2\nb 2\nc 1 1\n", 3, "broken.vec: row 3"),
        ("nan.vec", "1 2\na nan 2\n", 3, "nan.vec: row 2"),
        ("odd.pkl", "x", 3, "unknown format of vectors"),
        ("missing.vec", None, 3, "no vectors at this path"),
    ],
)
@pytest.mark.parametrize("out", ["none", ""])
def test_vectors_that_do_not_fit_are_refused_before_anything_is_made(
    desk, capsys, name, content, code, said, out
):
    if content is not None:
        (desk / name).write_text(content)
    assert release(desk, out, "--vectors", desk / name) == code
    told = capsys.readouterr().err.splitlines()[-1]
    assert said in told
    assert not (desk / "none").exists()


def test_an_empty_folder_and_two_ways_at_once_are_refused(desk, tmp_path, capsys):
    assert release(desk, "none", "--vectors", tmp_path) == 3
    assert (
        release(
            desk,
            "none",
            "--vectors",
            desk / "v.vec",
            "--set",
            f"vectors.more_text={desk / 'v.vec'}",
        )
        == 2
    )
    assert "--vectors cannot be combined with" in capsys.readouterr().err
    assert release(desk, "none", "--set", f"vectors.more_text={tmp_path / 'missing.txt'}") == 3
    assert not (desk / "none").exists()


def test_more_text_is_said(desk):
    (desk / "more.txt").write_text("waa wab public words\n" * 50)
    flags = [
        "--set",
        f"vectors.more_text={desk / 'more.txt'}",
        "--set",
        "vectors.dim=12",
        "--set",
        "vectors.epochs=1",
    ]
    assert release(desk, "both", *flags, "--set", "vectors.window=5") == 0
    for manifest in manifests(desk, "both"):
        assert manifest["vectors"]["from"] == "trained on these notes and more text"
        assert manifest["vectors"]["passes"] == 1
    assert str(desk) not in (desk / "both/release/manifest.json").read_text()
    shown = manifests(desk, "both")[0]["settings"]
    assert shown["vectors.more_text_given"]
    assert set(load_vectors(desk / "both/vault/vectors").words) == set(WORDS)


def test_the_plan_says_passes_and_trains_nothing_where_vectors_are_given(desk, capsys):
    assert release(desk, "", "--vectors", desk / "v.vec") == 0
    assert "passes over" not in capsys.readouterr().out
    assert release(desk, "", "--config", "paper") == 0
    assert "cbow, window 5, 100 dimensions, 5 passes" in capsys.readouterr().out
    assert release(desk, "") == 0
    assert "skipgram, window 40, 100 dimensions" in capsys.readouterr().out
