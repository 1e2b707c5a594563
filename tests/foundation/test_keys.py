"""Keys and keyed streams."""

from __future__ import annotations

import stat
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from clinveil.core import InputError, Key


def test_two_keys_differ_and_a_seed_repeats():
    assert Key.generate() != Key.generate()
    assert Key.from_seed(3) == Key.from_seed(3) != Key.from_seed(4)
    assert Key.from_seed(3).test_seed == 3
    assert Key.generate().test_seed is None


def test_repr_and_commitment_hide_the_secret():
    secret = bytes(range(32))
    key = Key(secret)
    assert secret.hex() not in repr(key) + key.commitment
    assert key.commitment == Key(secret).commitment != Key(secret[::-1]).commitment


def test_save_is_private_and_refuses_to_overwrite(tmp_path):
    path = tmp_path / "key.bin"
    key = Key.generate()
    key.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Key.load(path) == key
    with pytest.raises(FileExistsError):
        key.save(path)


def test_a_killed_run_leaves_no_part_of_a_key(tmp_path, monkeypatch):
    def killed(self, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        Key.generate().save(tmp_path / "key.bin")
    assert not [*tmp_path.iterdir()]


def test_a_file_that_is_no_key(tmp_path):
    path = tmp_path / "key.bin"
    path.write_bytes(b"short")
    with pytest.raises(InputError, match="instead of 32"):
        Key.load(path)
    with pytest.raises(InputError, match="cannot read the key file"):
        Key.load(tmp_path / "absent")


def test_streams_depend_on_key_purpose_and_path():
    key = Key.from_seed(1)
    first = [key.stream("a", "x").uint64() for _ in range(2)]
    assert first[0] == first[1]
    others = {
        key.stream("b", "x").uint64(),
        key.stream("a", "y").uint64(),
        key.stream("a", "x", "").uint64(),
        Key.from_seed(2).stream("a", "x").uint64(),
        first[0],
    }
    assert len(others) == 5


def test_paths_do_not_run_together():
    key = Key.from_seed(1)
    assert key.digest("p", "ab", "c") != key.digest("p", "a", "bc") != key.digest("p", "abc")


@given(st.text(), st.integers(1, 10**12))
def test_below_stays_below(path, bound):
    assert 0 <= Key.from_seed(0).stream("t", path).below(bound) < bound


def test_below_is_uniform():
    stream = Key.from_seed(5).stream("uniform")
    counts = Counter(stream.below(7) for _ in range(7000))
    assert chisquare([counts[i] for i in range(7)]).pvalue > 1e-4


def test_uniform_and_choice():
    stream = Key.from_seed(6).stream("u")
    draws = [stream.uniform() for _ in range(2000)]
    assert all(0 <= d < 1 for d in draws)
    assert abs(sum(draws) / 2000 - 0.5) < 0.03
    assert {stream.choice("abc") for _ in range(100)} == set("abc")
