"""Channels on disk: read back as they were, private, without pickle; and their digest."""

from __future__ import annotations

import json
import stat
from dataclasses import replace

import numpy as np
import pytest
from channel_cases import circle

from clinveil.channel import channel_digest, load_channel, save_channel
from clinveil.core import InputError, UsageError


def test_read_is_what_was_written(tmp_path):
    channel = circle().keeping(["smith", "josé"])
    save_channel(channel, tmp_path / "channel")
    again = load_channel(tmp_path / "channel")
    assert list(again.words) == list(channel.words)
    for name in ("indptr", "indices", "probabilities", "eligible"):
        one = getattr(again, name)
        other = getattr(channel, name)
        assert one.dtype == other.dtype and np.array_equal(one, other)
    assert (again.mechanism, again.kept) == (channel.mechanism, channel.kept)
    assert dict(again.parameters) == dict(channel.parameters)
    assert channel_digest(again) == channel_digest(channel)


def test_it_is_private_and_holds_no_pickle(tmp_path):
    save_channel(circle(), tmp_path / "channel")
    assert stat.S_IMODE((tmp_path / "channel").stat().st_mode) == 0o700
    for file in (tmp_path / "channel").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.suffix in (".npy", ".arrow", ".json")
        if file.suffix == ".npy":
            np.load(file, allow_pickle=False)


def test_a_taken_place_is_refused(tmp_path):
    save_channel(circle(), tmp_path / "channel")
    with pytest.raises(UsageError):
        save_channel(circle(low=2, high=4), tmp_path / "channel")
    assert load_channel(tmp_path / "channel").parameters == circle().parameters


def test_the_digest_names_every_part():
    channel = circle()
    others = [
        circle(low=3, high=4),
        circle(pool=5),
        circle(pool=0),
        channel.keeping(["pain"]),
        replace(channel, words=[*channel.words[:-1], "other"]),
        replace(channel, mechanism="other"),
        replace(channel, parameters={"low": 3}),
        circle(low=4, high=5),
        channel.dropping(["pain"]),
    ]
    digests = {channel_digest(c) for c in [channel, *others]}
    assert len(digests) == len(others) + 1
    assert channel_digest(circle()) == channel_digest(channel)


@pytest.mark.parametrize(
    "broken", ["meta.json", "words.arrow", "indptr.npy", "indices.npy", "probabilities.npy"]
)
@pytest.mark.parametrize("how", ["missing", "cut", "other"])
def test_a_damaged_folder_is_refused_in_one_line(tmp_path, broken, how):
    save_channel(circle(), tmp_path / "channel")
    file = tmp_path / "channel" / broken
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:20] if how == "cut" else b"{}")
    with pytest.raises(InputError) as refusal:
        load_channel(tmp_path / "channel")
    assert str(refusal.value).startswith("channel: ") and "\n" not in str(refusal.value)
    assert not any(word in str(refusal.value) for word in ("smith", "josé"))


def test_a_channel_that_lost_its_balance_is_refused(tmp_path):
    save_channel(circle(), tmp_path / "channel")
    file = tmp_path / "channel" / "probabilities.npy"
    np.save(file, np.load(file) * 0.9)
    with pytest.raises(InputError):
        load_channel(tmp_path / "channel")


def test_the_meta_file_says_what_it_is(tmp_path):
    save_channel(circle(), tmp_path / "channel")
    meta = json.loads((tmp_path / "channel" / "meta.json").read_text())
    assert (meta["schema"], meta["secret"], meta["mechanism"]) == (
        "clinveil.channel/1",
        True,
        "neighbours",
    )
