"""What a finished run says of itself is so: notes shown side by side, and every digest of both manifests."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import pyarrow.parquet as pq
import pytest

from clinveil.channel.apply import Obfuscator
from clinveil.channel.identity import identity_channel
from clinveil.cli.main import main
from clinveil.core.files import sha256
from clinveil.core.keys import Key
from clinveil.core.runfolder import fingerprint
from clinveil.core.tokens import words
from clinveil.releases import side_by_side
from clinveil.report.record import from_json

FAST = ["--epochs", "1", "--window", "5", "--dim", "16", "--workers", "1", "--quiet"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Demo notes, and a finished release of them."""
    folder = tmp_path_factory.mktemp("agrees")
    assert main(["generate", "-o", str(folder / "demo"), "--patients", "60", "--seed", "8", "--quiet"]) == 0
    patients = ["--patients", str(folder / "demo" / "patients.parquet")]
    assert main(["release", str(folder / "demo" / "notes.parquet"), "-o", str(folder / "out"), *patients, *FAST]) == 0
    return folder


def shown(folder):
    """The released words of each sampled note of the internal report."""
    record = from_json(json.loads((folder / "out/vault/record.json").read_text())["internal"])
    return [" ".join(token.released for token in note.tokens if token.released) for note in record.notes]


def test_every_sampled_note_stands_in_the_release_word_for_word(desk):
    released = set(pq.read_table(desk / "out/release/notes.parquet")["text"].to_pylist())
    notes = shown(desk)
    assert len(notes) == side_by_side.SAMPLED and all(len(note.split()) > 10 for note in notes)
    assert [note in released for note in notes] == [True] * len(notes)


@pytest.mark.parametrize("order", [{}, {"shuffle": "note"}, {"sentences": True, "shuffle": "window"}])
def test_words_stand_beside_their_own_source_in_any_order(order):
    """On the identity each word stands beside itself; one that was written twice stands there twice."""
    text = "The patient, Mary Jones, has pain. No fever in 12 days."
    channel = identity_channel(words(text)).under(length=0.9, **order)
    notes = [side_by_side.Source(f"n{i}", "p", [(text, text, False)]) for i in range(30)]
    seen = Counter()
    for note in side_by_side.aligned(notes, Obfuscator(channel, Key.from_seed(1), align=True), "A note"):
        for token in note.tokens:
            assert set(token.released.split()) <= {token.source.lower()}
            seen[len(token.released.split())] += token.source.isalpha()
    assert min(seen[0], seen[1], seen[2]) > 20


def test_a_long_note_is_cut_after_it_was_treated(desk, monkeypatch):
    """At any cut, also within a word or an identifier, what is shown is how a released note begins."""
    patients = ["--patients", str(desk / "demo" / "patients.parquet")]
    monkeypatch.setattr(side_by_side, "LONGEST", 97)
    source = str(desk / "demo" / "notes.parquet")
    assert main(["release", source, "-o", str(desk / "cut"), "--again", *patients, *FAST]) == 0
    released = pq.read_table(desk / "cut/release/notes.parquet")["text"].to_pylist()
    record = from_json(json.loads((desk / "cut/vault/record.json").read_text())["internal"])
    for note in record.notes:
        words = " ".join(token.released for token in note.tokens if token.released)
        assert any(f"{text} ".startswith(f"{words} ") for text in released)


def test_every_digest_of_both_manifests_is_that_of_the_file(desk):
    vault, release = desk / "out" / "vault", desk / "out" / "release"
    for manifest in (json.loads((place / "manifest.json").read_text()) for place in (vault, release)):
        assert set(manifest["vault_digests"]) == {"vectors", "neighbours", "channel"}
        assert manifest["vault_digests"] == {name: fingerprint(vault / name) for name in manifest["vault_digests"]}
        assert manifest["files"] == {name: sha256(release / name) for name in manifest["files"]}
        assert set(manifest["files"]) == {"notes.parquet"}
    private = json.loads((vault / "manifest.json").read_text())["private"]
    assert private["source_sha256"] == sha256(desk / "demo" / "notes.parquet")


def test_every_digest_of_the_report_is_that_of_the_file(desk):
    vault = desk / "out" / "vault"
    record = from_json(json.loads((vault / "record.json").read_text())["internal"])
    said = {fact.label: fact.value for fact in record.provenance}
    for name in ("vectors", "neighbours", "channel"):
        assert said[f"{name} (SHA-256)"] == fingerprint(vault / name)
    assert said["released notes (SHA-256)"] == sha256(desk / "out/release/notes.parquet")


def test_the_hash_of_a_folder_is_of_its_files(tmp_path):
    """`sha256sum` and a list of names are all that is needed to check it."""
    (tmp_path / "b").write_text("2")
    (tmp_path / "a").write_text("1")
    listing = "".join(f"{n}\0{hashlib.sha256(t.encode()).hexdigest()}\n" for n, t in (("a", "1"), ("b", "2")))
    assert fingerprint(tmp_path) == hashlib.sha256(listing.encode()).hexdigest()
