"""One model is the file, the flags and the record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clinveil.channel import NeighbourRange
from clinveil.core import (
    NotesSettings,
    Registry,
    Settings,
    UsageError,
    choice,
    config_names,
    flag,
    group,
    load_settings,
    own_settings,
)
from clinveil.releases import ReleaseSettings


def test_defaults_are_the_documented_ones():
    settings = ReleaseSettings()
    channel = settings.channel
    assert (settings.kind, str(channel.n), channel.layout) == ("obfuscated", "3-14", "sentences")
    assert (channel.numbers, channel.min_patients, settings.seed) == ("drop", "auto", None)


def test_the_patient_floor_grows_with_the_notes():
    def floors(**how):
        return [
            ReleaseSettings(**how).resolved(n).channel.floor for n in (1, 200, 201, 500, 1_000_000)
        ]

    assert floors() == [5, 5, 6, 13, 1000]
    assert floors(min_patients=7) == [7] * 5
    with pytest.raises(UsageError, match=r"--min-patients: must be 1 or more, or auto"):
        load_settings(ReleaseSettings, {"min_patients": 0})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"kind": "deidentified", "background": 0.3},
            "--background applies to --as obfuscated, not to",
        ),
        (
            {"kind": "deidentified", "min_patients": 5},
            "--min-patients applies to --as obfuscated or synthetic",
        ),
        (
            {"kind": "synthetic", "max_kept": 0.5},
            "--max-kept applies to --as obfuscated or deidentified, not to",
        ),
        ({"kind": "nothing"}, "--as: one of obfuscated, deidentified, synthetic"),
    ],
)
def test_settings_of_another_kind_are_refused(flags, message):
    with pytest.raises(UsageError, match=f"^{message}"):
        load_settings(ReleaseSettings, flags)


def test_settings_of_another_kind_are_refused_in_the_file_and_by_set(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('kind = "deidentified"\n[lm]\nsize = "tiny"\n')
    with pytest.raises(
        UsageError,
        match=r"^lm\.size in c\.toml applies to --as synthetic, not to --as deidentified",
    ):
        load_settings(ReleaseSettings, {}, path)
    with pytest.raises(UsageError, match=r"^--set vectors\.window applies to --as obfuscated"):
        load_settings(ReleaseSettings, {"kind": "synthetic"}, None, ["vectors.window=5"])


def test_set_takes_keys_of_groups_and_tables(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(
        'kind = "synthetic"\n[lm]\nmodel = "lstm"\nlayers = 2\n[synthetic]\ncount = 7\n'
    )
    made = load_settings(ReleaseSettings, {}, path, ["lm.layers=3", "synthetic.temperature=0.5"])
    assert (made.lm.model, made.lm.layers, made.synthetic.count, made.synthetic.temperature) == (
        "lstm",
        3,
        7,
        0.5,
    )
    assert ReleaseSettings.model_validate(made.flat()) == made
    made = load_settings(
        ReleaseSettings, {"n": "7"}, None, ["vectors.window=5", "channel.n=3-9", "label=x"]
    )
    assert (made.vectors.window, str(made.channel.n), made.label) == (5, "7", ("x",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "lm.layrs=2",
            r"^--set: this command has no setting lm\.layrs \(did you mean lm\.layers\?\)",
        ),
        ("layers=2", r"did you mean lm\.layers\?"),
        ("lm.layers=many", r"^--set lm\.layers: a value of the wrong type"),
        ("lm.layers", r"^--set lm\.layers: no value \(write --set key=value\)"),
        ("lm=3", r"^--set lm is a table, not a value \(set its keys, such as lm\.KEY\)$"),
        ("synthetic=x", r"^--set synthetic is a table, not a value"),
        ("lm.layers=0", r"^lm\.layers: Input should be greater than or equal to 1"),
        ("lm.model=lute", r"^lm\.model: one of unigram, ngram, lstm, pretrained"),
    ],
)
def test_a_mistake_in_set_names_the_key(text, message):
    with pytest.raises(UsageError, match=message):
        load_settings(ReleaseSettings, {"kind": "synthetic"}, None, [text])


def test_a_file_sets_no_table_to_a_value_and_no_setting_twice(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('kind = "synthetic"\nlm = 3\n')
    with pytest.raises(UsageError, match=r"^lm in c\.toml is a table, not a value"):
        load_settings(ReleaseSettings, {}, path)
    for text in (
        'kind = "obfuscated"\nas = "synthetic"\n',
        'as = "synthetic"\nkind = "synthetic"\n',
    ):
        path.write_text(text)
        with pytest.raises(
            UsageError, match=r"^c\.toml: (kind and as|as and kind) are the same setting"
        ):
            load_settings(ReleaseSettings, {}, path)
    path.write_text("dim = 12\n[vectors]\ndim = 13\n")
    with pytest.raises(UsageError, match=r"dim and vectors\.dim are the same setting"):
        load_settings(ReleaseSettings, {}, path)
    with pytest.raises(UsageError, match=r"^--lm is a table"):
        load_settings(ReleaseSettings, {"kind": "synthetic", "lm": 3})


def test_flags_win_over_the_file(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('n = "5"\nlayout = "keep"\nlabel = ["a", "b"]\n')
    settings = load_settings(ReleaseSettings, {"n": "7", "layout": None}, path)
    assert (str(settings.channel.n), settings.channel.layout) == ("7", "keep")
    assert settings.label == ("a", "b")


def test_an_empty_value_is_unset_as_in_a_file_of_init_config(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text('signing_key = ""\n[synthetic]\npublic = ""\n')
    found = load_settings(ReleaseSettings, {"kind": "synthetic"}, path)
    assert (
        found.synthetic.public is None and found.lm.model == "ngram" and found.signing_key is None
    )


def test_the_record_reads_back():
    settings = ReleaseSettings(n="5-9", label=("x",))
    assert ReleaseSettings.model_validate(settings.flat()) == settings


@pytest.mark.parametrize("text", ["0", "x", "9-3", "3-", "-3", "3-9-12", "1"])
def test_bad_ranges(text):
    with pytest.raises(UsageError, match="--n"):
        load_settings(ReleaseSettings, {"n": text})


def test_typos_and_broken_files(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("laiout = 'keep'")
    with pytest.raises(UsageError, match="laiout"):
        load_settings(ReleaseSettings, {}, path)
    path.write_text("layout = ")
    with pytest.raises(UsageError, match=r"c\.toml"):
        load_settings(ReleaseSettings, {}, path)


def test_values_never_show_in_errors():
    with pytest.raises(UsageError) as caught:
        load_settings(ReleaseSettings, {"dim": "qzxsecret"})
    assert "qzxsecret" not in str(caught.value)


def test_a_range_prints_as_it_is_written():
    assert [str(NeighbourRange(low=a, high=b)) for a, b in ((5, 5), (3, 14))] == ["5", "3-14"]


def test_shipped_files_are_named_by_config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config_names(ReleaseSettings) == ("paper", "strict")
    strict = load_settings(ReleaseSettings, {"background": 0.7}, Path("strict"))
    assert (str(strict.channel.n), strict.channel.background) == ("7-20", 0.7)
    paper = load_settings(ReleaseSettings, {}, Path("paper"), ["epochs=2"])
    assert (paper.vectors.algorithm, paper.vectors.epochs, paper.max_names) == ("cbow", 2, 1.0)
    assert paper.channel.layout == "plain"
    with pytest.raises(UsageError, match=r"^lax: the file does not exist.*one of paper, strict"):
        load_settings(ReleaseSettings, {}, Path("lax"))
    with pytest.raises(UsageError, match=r"^n in strict applies to --as obfuscated"):
        load_settings(ReleaseSettings, {"kind": "deidentified"}, Path("strict"))
    (tmp_path / "strict").write_text("n = 4\n")
    assert str(load_settings(ReleaseSettings, {}, Path("strict")).channel.n) == "4"


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
    with pytest.raises(UsageError, match=r"^--pitch requires --instrument horn$"):
        load_settings(_Concert, {"pitch": 4})
    with pytest.raises(UsageError, match=r"^--volume requires --instrument flute or horn$"):
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
        assert load_settings(_Concert, {}, tmp_path / "c.toml").band.own == Harp.Settings(
            strings=20
        )
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


@pytest.mark.parametrize(
    "text", ["force = true", "workers = 2", 'label = ["a"]', "[note]\ntext = 'a'"]
)
def test_a_key_that_the_command_lacks_is_refused_in_the_file_too(tmp_path, text):
    class Some(Settings):
        notes: NotesSettings = group(NotesSettings)

    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(UsageError, match=r"c\.toml: this command has no setting"):
        load_settings(Some, {}, tmp_path / "c.toml")


def test_values_of_a_list_add_up_and_other_names_are_accepted():
    made = load_settings(
        ReleaseSettings, {}, None, ["label=a", "label=b", 'keep=["x", "y"]', "as=synthetic"]
    )
    assert (made.label, made.keep, made.kind) == (("a", "b"), ("x", "y"), "synthetic")
