"""What a finished run says of itself is so: notes shown side by side, and every digest of both
manifests.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from html import unescape

import numpy as np
import pyarrow.parquet as pq
import pytest
from release_cases import release

from clinveil.channel import WordObfuscator, identity_channel
from clinveil.cli import main
from clinveil.core import Key, fingerprint, lookup_form, sha256, words
from clinveil.corpus import rows
from clinveil.releases import attacked_release, samples
from clinveil.report import from_json


@pytest.fixture(scope="module")
def desk(finished):
    return finished


def shown(folder):
    """The released words of each sampled note of `sample.html`, in the order of the source."""
    page = (folder / "vault/sample.html").read_text(encoding="utf-8")
    notes = page.split('<div class="words">')[1:]
    texts = (" ".join(re.findall("<ins>(.*?)</ins>", note, re.S)) for note in notes)
    return [unescape(text).split() for text in texts]


def test_every_sampled_note_stands_in_the_release_with_all_its_words(desk):
    released = {
        tuple(sorted(words(text)))
        for text in pq.read_table(desk / "out/release/notes.parquet")["text"].to_pylist()
    }
    notes = shown(desk / "out")
    assert len(notes) == samples.SAMPLED and all(len(note) > 10 for note in notes)
    assert [tuple(sorted(note)) in released for note in notes] == [True] * len(notes)


@pytest.fixture(scope="module")
def sides(desk):
    """The policy that the manifest names, the channel, and of each released note its words and
    those it is made of.
    """
    told = json.loads((desk / "out/release/manifest.json").read_text())["settings"]
    people = desk / "demo/patients.parquet"
    both = attacked_release(
        desk / "out/release",
        desk / "out/vault",
        desk / "demo/notes.parquet",
        patients=people,
        workers=1,
    )
    entered = {note.note_id: note.text for note in rows(both.entered)}
    ids = {note.note_id: both.notes[note.note_id] for note in rows(both.released)}
    notes = [(words(note.text), entered[ids[note.note_id]]) for note in rows(both.released)]
    return told, both.channel, notes


def test_the_page_and_the_manifest_name_the_policy_of_the_channel(desk, sides):
    told, channel, _ = sides
    policy = {"layout": channel.policy.layout, "background": channel.policy.background}
    policy["numbers"] = channel.policy.numbers
    assert policy == {name: told[name] for name in policy}
    page = (desk / "out/release/report.html").read_text()
    assert [
        name for name, value in policy.items() if f">{name.replace('_', ' ')}<" not in page
    ] == []


def test_every_released_word_is_an_output_of_the_channel_for_its_word(sides):
    _, channel, notes = sides
    pairs = Counter()
    for released, entered in notes:
        spans = channel.released_spans(entered)
        pairs.update(zip((lookup_form(entered[a:b]) for a, b in spans), released, strict=True))
    inputs = [channel.ids.get(word, channel.unknown) for word, _ in pairs]
    outputs = [channel.ids[word] for _, word in pairs]
    possible = np.asarray(channel.matrix()[inputs, outputs]).ravel() > 0
    possible |= channel.pool[outputs] > 0  # a background draw
    assert pairs.total() > 10_000 and possible.all()


def test_words_stand_beside_their_own_source():
    """On the identity each word stands beside itself."""
    text = "The patient, Mary Jones, has pain. No fever in 12 days."
    notes = [samples.SampledNote(f"n{i}", "p", [(text, text, False)]) for i in range(3)]
    obfuscator = WordObfuscator(identity_channel(words(text)), Key.from_seed(1))
    for note in samples.aligned(notes, obfuscator):
        shown = [(token.source.lower(), token.released) for token in note.tokens]
        assert [pair for pair in shown if pair[1]] == [(word, word) for word in words(text)]


def test_a_long_note_is_cut_after_it_was_treated(desk, monkeypatch):
    """At any cut, also within a word or an identifier, what is shown is how a released note
    begins.
    """
    monkeypatch.setattr(samples, "LONGEST", 97)
    assert main(release(desk, "cut")) == 0
    released = pq.read_table(desk / "cut/release/notes.parquet")["text"].to_pylist()
    for note in shown(desk / "cut"):
        assert any(words(text)[: len(note)] == note for text in released)


def test_every_digest_of_both_manifests_is_that_of_the_file(desk):
    vault = desk / "out" / "vault"
    release = desk / "out" / "release"
    for manifest in (
        json.loads((place / "manifest.json").read_text()) for place in (vault, release)
    ):
        assert set(manifest["vault_digests"]) == {"vectors", "neighbours", "channel"}
        assert manifest["vault_digests"] == {
            name: fingerprint(vault / name) for name in manifest["vault_digests"]
        }
        assert manifest["files"] == {name: sha256(release / name) for name in manifest["files"]}
        assert set(manifest["files"]) == {"notes.parquet", "README.md", "report.html"}
    private = json.loads((vault / "manifest.json").read_text())["private"]
    assert private["source_sha256"] == sha256(desk / "demo" / "notes.parquet")


def test_every_digest_of_the_report_is_that_of_the_file(desk):
    vault = desk / "out" / "vault"
    record = from_json((vault / "record.json").read_text())
    said = {fact.label: fact.value for fact in record.provenance}
    for name in ("vectors", "neighbours", "channel"):
        assert said[f"{name} (SHA-256)"] == fingerprint(vault / name)
    assert said["released notes (SHA-256)"] == sha256(desk / "out/release/notes.parquet")


def test_the_hash_of_a_folder_is_of_its_files(tmp_path):
    """`sha256sum` and a list of names are all that is needed to check it."""
    (tmp_path / "b").write_text("2")
    (tmp_path / "a").write_text("1")
    listing = "".join(
        f"{n}\0{hashlib.sha256(t.encode()).hexdigest()}\n" for n, t in (("a", "1"), ("b", "2"))
    )
    assert fingerprint(tmp_path) == hashlib.sha256(listing.encode()).hexdigest()
