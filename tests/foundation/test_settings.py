"""One model is the file, the flags and the record."""

from __future__ import annotations

import pytest

from clinveil.channel.settings import NeighbourRange
from clinveil.core.errors import UsageError
from clinveil.core.settings import load_settings
from clinveil.release.settings import ReleaseSettings


def test_defaults_are_the_documented_ones():
    settings = ReleaseSettings()
    channel = settings.channel
    assert (channel.n.low, channel.n.high) == (3, 14)
    assert (channel.memo, channel.layout, channel.numbers, channel.min_patients) == ("patient", "plain", "drop", 5)
    assert settings.seed is None


def test_flags_win_over_the_file(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('n = "5"\nmemo = "note"\nlabel = ["a", "b"]\n')
    settings = load_settings(ReleaseSettings, {"n": "7", "memo": None}, path)
    assert (str(settings.channel.n), settings.channel.memo, settings.label) == ("7", "note", ("a", "b"))


def test_the_record_reads_back():
    settings = ReleaseSettings(n="5-9", label=("x",))
    assert ReleaseSettings.model_validate(settings.flat()) == settings


@pytest.mark.parametrize("text", ["0", "x", "9-3", "3-", "-3", "3-9-12", "1"])
def test_bad_ranges(text):
    with pytest.raises(UsageError, match="--n"):
        load_settings(ReleaseSettings, {"n": text})


def test_typos_and_broken_files(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("memmo = 'note'")
    with pytest.raises(UsageError, match="memmo"):
        load_settings(ReleaseSettings, {}, path)
    path.write_text("memo = ")
    with pytest.raises(UsageError, match=r"c\.toml"):
        load_settings(ReleaseSettings, {}, path)


def test_values_never_show_in_errors():
    with pytest.raises(UsageError) as caught:
        load_settings(ReleaseSettings, {"dim": "qzxsecret"})
    assert "qzxsecret" not in str(caught.value)


def test_a_range_prints_as_it_is_written():
    assert [str(NeighbourRange(low=a, high=b)) for a, b in ((5, 5), (3, 14))] == ["5", "3-14"]


def test_a_profile_gives_way_to_the_file_and_to_flags(tmp_path):
    strict = load_settings(ReleaseSettings, {"profile": "strict"}).channel
    assert (str(strict.n), strict.min_patients, strict.unknown) == ("9-30", 10, "drop")
    assert load_settings(ReleaseSettings, {"profile": "paper"}).channel.memo == "occurrence"
    path = tmp_path / "c.toml"
    path.write_text('profile = "strict"\nn = "5"\n')
    mixed = load_settings(ReleaseSettings, {"min_patients": 7}, path).channel
    assert (str(mixed.n), mixed.min_patients, mixed.unknown) == ("5", 7, "drop")
    with pytest.raises(UsageError, match="--profile"):
        load_settings(ReleaseSettings, {"profile": "lax"})
