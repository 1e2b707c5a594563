"""One model is the file, the flags and the record."""

from __future__ import annotations

from typing import Any

import pytest

from clinveil.channel.settings import NeighbourRange
from clinveil.core.errors import UsageError
from clinveil.core.registry import Registry
from clinveil.core.settings import NotesSettings, Settings, choice, flag, group, load_settings, own_settings
from clinveil.releases.settings import ReleaseSettings


def test_defaults_are_the_documented_ones():
    settings = ReleaseSettings()
    channel = settings.channel
    assert (channel.mechanism, channel.own.cluster_size, channel.own.cluster_share) == ("clusters", 16, 0.25)
    assert (channel.memo, channel.shuffle, channel.vary_length) == ("rare", "note", 0.2)
    assert (channel.layout, channel.numbers, channel.min_patients) == ("plain", "drop", 5)
    assert settings.seed is None


def test_flags_win_over_the_file(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('mechanism = "neighbours"\nn = "5"\nmemo = "note"\nlabel = ["a", "b"]\n')
    settings = load_settings(ReleaseSettings, {"n": "7", "memo": None}, path)
    assert (str(settings.channel.n), settings.channel.memo, settings.label) == ("7", "note", ("a", "b"))


def test_the_record_reads_back():
    settings = ReleaseSettings(mechanism="neighbours", n="5-9", label=("x",))
    assert ReleaseSettings.model_validate(settings.flat()) == settings


def test_neighbours_are_of_mechanisms_that_draw_them():
    with pytest.raises(UsageError, match="-n and --n-per are of"):
        load_settings(ReleaseSettings, {"n": "7"})


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
    assert (strict.own.cluster_size, strict.min_patients, strict.unknown) == (32, 10, "drop")
    assert load_settings(ReleaseSettings, {"profile": "paper"}).channel.memo == "occurrence"
    path = tmp_path / "c.toml"
    path.write_text('profile = "strict"\ncluster_size = 5\n')
    mixed = load_settings(ReleaseSettings, {"min_patients": 7}, path).channel
    assert (mixed.own.cluster_size, mixed.min_patients, mixed.unknown) == (5, 7, "drop")
    with pytest.raises(UsageError, match="--profile"):
        load_settings(ReleaseSettings, {"profile": "lax"})


class _Loud(Settings):
    volume: float = flag(1.0, "How loud.", gt=0)
    pitch: int = flag(3, "How high.")


class _Soft(Settings):
    volume: float = flag(1.0, "How loud.", gt=0)


class _Horn:
    Settings = _Loud


class _Flute:
    Settings = _Soft


class _Drum:
    pass


INSTRUMENTS: Registry[Any] = Registry("instrument", first=("drum",))
for name, made in (("drum", _Drum), ("horn", _Horn), ("flute", _Flute)):
    INSTRUMENTS.register(name)(made)


class _Band(Settings):
    instrument: str = choice(INSTRUMENTS, "drum", "What is played.")
    own: Settings = own_settings("instrument")
    also: tuple[str, ...] = choice(INSTRUMENTS, (), "What else is played.")


class _Concert(Settings):
    band: _Band = group(_Band)
    seats: int = flag(10, "Seats.")


def test_a_choice_takes_the_settings_of_what_it_names_and_refuses_those_of_others():
    assert list(_Concert.flags()) == ["instrument", "volume", "pitch", "also", "seats"]
    made = load_settings(_Concert, {"instrument": "horn", "volume": 2.5, "seats": 3})
    assert made.band.own == _Loud(volume=2.5)
    assert made.flat() == {"instrument": "horn", "volume": 2.5, "pitch": 3, "also": [], "seats": 3}
    assert _Concert.model_validate(made.flat()) == made
    assert _Concert.model_validate(_Concert().flat()) == _Concert()
    assert type(_Concert().band.own) is Settings
    with pytest.raises(UsageError, match=r"^--pitch is of --instrument horn$"):
        load_settings(_Concert, {"pitch": 4})
    with pytest.raises(UsageError, match=r"^--volume is of --instrument flute or horn$"):
        load_settings(_Concert, {"volume": 4.0})
    with pytest.raises(UsageError, match="--volume: Input should be greater than 0"):
        load_settings(_Concert, {"instrument": "horn", "volume": -1})
    for given in ({"instrument": "lute"}, {"also": ("horn", "lute")}):
        with pytest.raises(UsageError, match=r"^--(instrument|also): one of drum, flute, horn$"):
            load_settings(_Concert, given)


def test_what_is_registered_later_brings_its_settings(tmp_path):
    class Harp:
        class Settings(Settings):
            strings: int = flag(47, "Strings.")

    INSTRUMENTS.register("harp")(Harp)
    try:
        (tmp_path / "c.toml").write_text('instrument = "harp"\nstrings = 20\n')
        assert load_settings(_Concert, {}, tmp_path / "c.toml").band.own == Harp.Settings(strings=20)
        assert "strings" in _Concert.flags()
    finally:
        INSTRUMENTS.forget("harp")
    assert "strings" not in _Concert.flags()


def test_a_name_that_two_groups_have_is_a_programming_error():
    with pytest.raises(ValueError, match="_Twice has seats twice"):

        class _Twice(Settings):
            concert: _Concert = group(_Concert)
            seats: int = flag(1, "Seats.")


def test_others_by_their_flat_names():
    made = _Concert(instrument="flute", volume=2.0)
    assert made.but(seats=1, volume=3.0) == _Concert(instrument="flute", volume=3.0, seats=1)
    assert _Concert(band=made.band).band is made.band
    assert _Concert(band=made.band, volume=5.0).band.own == _Soft(volume=5.0)


@pytest.mark.parametrize("text", ["force = true", "workers = 2", 'label = ["a"]', "[notes]\ntext = 'a'"])
def test_a_key_that_the_command_lacks_is_refused_in_the_file_too(tmp_path, text):
    class Some(Settings):
        notes: NotesSettings = group(NotesSettings)

    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(UsageError, match=r"c\.toml: this command has no setting"):
        load_settings(Some, {}, tmp_path / "c.toml")
