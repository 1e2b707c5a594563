"""Settings of the noise mechanisms that go together."""

from __future__ import annotations

import numpy as np
import pytest

from clinveil.channel.build import build_channel, mechanism_of
from clinveil.channel.files import channel_digest
from clinveil.channel.mechanisms.gaussian import GaussianMechanism
from clinveil.channel.mechanisms.laplace import LaplaceMechanism
from clinveil.channel.mechanisms.neighbours import NeighbourMechanism
from clinveil.channel.settings import ChannelSettings
from clinveil.core.errors import UsageError
from clinveil.core.keys import Key
from clinveil.core.load_settings import load_settings
from clinveil.releases.settings import ReleaseSettings
from clinveil.vectors.table import Vectors


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
