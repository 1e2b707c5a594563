"""Noise mechanisms from the command line, and the settings that go together."""

from __future__ import annotations

import json

import numpy as np
import pytest
from test_obfuscate_command import SECRETS, notes_table, run

from clinveil.channel.build import build_channel, mechanism_of
from clinveil.channel.files import channel_digest, load_channel
from clinveil.channel.mechanisms.gaussian import GaussianMechanism
from clinveil.channel.mechanisms.laplace import LaplaceMechanism
from clinveil.channel.mechanisms.neighbours import NeighbourMechanism
from clinveil.channel.settings import ChannelSettings
from clinveil.cli.main import main
from clinveil.core.errors import UsageError
from clinveil.core.keys import Key
from clinveil.core.load_settings import load_settings
from clinveil.core.tokens import words
from clinveil.releases.settings import ReleaseSettings
from clinveil.vectors.table import Vectors


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    import pyarrow.parquet as pq

    path = tmp_path_factory.mktemp("noisy") / "notes.parquet"
    pq.write_table(notes_table(), path)
    return path


@pytest.mark.parametrize("how", [("laplace", "epsilon", "200"), ("gaussian", "sigma", "0.01")])
def test_obfuscate_with_noise(notes, tmp_path, capsys, how):
    out = tmp_path / "out.csv"
    assert run(notes, out, "--seed", "1", "--set", f"mechanism={how[0]}", "--set", f"{how[1]}={how[2]}") == 0
    said = capsys.readouterr().err
    assert f"{how[1]} {how[2]}:" in said and "guarantees no epsilon" in said
    vault = tmp_path / "out.csv.vault"
    manifest, channel = json.loads((vault / "manifest.json").read_text()), load_channel(vault / "channel")
    assert channel.mechanism == manifest["mechanism"] == how[0]
    assert manifest["parameters"] == dict(channel.parameters)
    assert manifest["tokens"]["self_replaced"] > 0 and channel.maps_to_itself
    assert f"{manifest['tokens']['self_replaced']} of them equal to their source word" in said
    released = set(words(out.read_text()))
    assert not released & {form for secret in SECRETS for form in words(secret)}


def test_a_share_of_unchanged_words_is_met(notes, tmp_path):
    out = tmp_path / "out.csv"
    assert run(notes, out, "--seed", "1", "--set", "mechanism=laplace", "--set", "unchanged=0.4", "--quiet") == 0
    channel = load_channel(tmp_path / "out.csv.vault" / "channel")
    assert channel.parameters["unchanged"] == pytest.approx(0.4, abs=0.05)
    tokens = json.loads((tmp_path / "out.csv.vault" / "manifest.json").read_text())["tokens"]
    assert tokens["self_replaced"] / tokens["words"] == pytest.approx(0.4, abs=0.06)


def test_workers_change_nothing(notes, tmp_path):
    texts = []
    for workers in ("1", "3"):
        out = tmp_path / f"out{workers}.csv"
        command = [
            "obfuscate",
            str(notes),
            "-o",
            str(out),
            "--seed",
            "5",
            "--set",
            "mechanism=gaussian",
            "--set",
            "sigma=0.1",
        ]
        vectors = tmp_path / "out1.csv.vault" / "vectors"
        command += ["--vectors", str(vectors)] if vectors.exists() else ["--set", "dim=8", "--set", "epochs=1"]
        assert main([*command, "--workers", workers]) == 0
        texts.append(out.read_text())
    assert texts[0] == texts[1]


def test_kept_words_and_dropped_unknown_words_go_on_as_they_are(notes, tmp_path):
    (tmp_path / "keep.txt").write_text("pain\n")
    out = tmp_path / "out.csv"
    more = ["--set", f"keep_words={tmp_path / 'keep.txt'}", "--set", "unknown=drop", "--set", "min_count=2"]
    assert run(notes, out, "--seed", "1", "--set", "mechanism=laplace", "--set", "epsilon=5", *more) == 0
    channel = load_channel(tmp_path / "out.csv.vault" / "channel")
    assert channel.kept == {"pain"} and channel.row(channel.unknown)[0].size == 0
    tokens = json.loads((tmp_path / "out.csv.vault" / "manifest.json").read_text())["tokens"]
    assert tokens["kept_words"] > 0 and tokens["dropped"] > 0


@pytest.mark.parametrize(
    "flags, said",
    [
        ({"mechanism": "laplace"}, "exactly one of --epsilon and --unchanged"),
        ({"mechanism": "gaussian"}, "exactly one of --sigma and --unchanged"),
        ({"mechanism": "laplace", "epsilon": 1.0, "unchanged": 0.5}, "exactly one of"),
        ({"epsilon": 1.0}, "--epsilon requires --mechanism laplace"),
        ({"sigma": 1.0}, "--sigma requires --mechanism gaussian"),
        ({"mechanism": "gaussian", "epsilon": 1.0, "sigma": 1.0}, "--epsilon requires"),
        ({"unchanged": 0.5}, "--unchanged requires --mechanism laplace"),
        ({"mechanism": "laplace", "epsilon": 0.0}, "--epsilon: "),
        ({"mechanism": "laplace", "epsilon": float("inf")}, "--epsilon: "),
        ({"mechanism": "gaussian", "sigma": float("nan")}, "--sigma: "),
        ({"mechanism": "laplace", "unchanged": 1.0}, "--unchanged: "),
        ({"mechanism": "clusters", "unchanged": 0.5}, "--unchanged requires --mechanism laplace"),
        ({"mechanism": "clusters", "epsilon": 1.0}, "--epsilon requires --mechanism laplace"),
        ({"mechanism": "nearly"}, "--mechanism: "),
    ],
)
def test_a_mechanism_and_its_size_go_together(flags, said):
    with pytest.raises(UsageError) as refusal:
        load_settings(ChannelSettings, flags)
    assert said in str(refusal.value)


def test_a_release_may_be_made_with_noise():
    how = load_settings(ReleaseSettings, {"mechanism": "laplace", "epsilon": 9.0}).channel
    assert mechanism_of(how) == LaplaceMechanism(epsilon=9.0)


def test_the_noise_is_drawn_under_the_key():
    settings = ChannelSettings(mechanism="laplace", epsilon=3.0)
    words, matrix = [f"w{chr(97 + i)}" for i in range(20)], np.random.default_rng(0).normal(size=(20, 3))
    counts = np.arange(20, 0, -1)
    vectors = Vectors(words, matrix.astype(np.float32), counts, counts + 50, 100)
    made = [build_channel(vectors, settings, key=Key.from_seed(s), threads=1)[0] for s in (1, 1, 2)]
    digests = [channel_digest(channel) for channel in made]
    assert digests[0] == digests[1] != digests[2]
    assert "seed" not in made[0].parameters


def test_the_settings_name_a_mechanism():
    assert mechanism_of(ChannelSettings()) == NeighbourMechanism()
    assert mechanism_of(ChannelSettings(mechanism="gaussian", unchanged=0.5)) == GaussianMechanism(unchanged=0.5)
