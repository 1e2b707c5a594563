"""One model is the file, the flags and the record."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinveil.channel import NeighbourRange
from clinveil.core import (
    Members,
    NotesSettings,
    Settings,
    UsageError,
    config_names,
    group,
    load_settings,
    setting,
)
from clinveil.releases import ReleaseSettings


def test_defaults_are_the_documented_ones():
    settings = ReleaseSettings()
    channel = settings.channel
    assert (settings.kind, str(channel.n), channel.layout) == ("", "3-14", "sentences")
    assert (channel.numbers, channel.min_patients, settings.seed) == ("drop", "auto", None)


def test_the_patient_floor_grows_with_the_notes():
    def floors(**how):
        return [
            ReleaseSettings(kind="obfuscated", **how).resolved(n).channel.floor
            for n in (1, 200, 201, 500, 1_000_000)
        ]

    assert floors() == [5, 5, 6, 13, 1000]
    assert floors(channel={"min_patients": 7}) == [7] * 5
    with pytest.raises(UsageError, match=r"^channel\.min_patients: must be 1 or more, or auto"):
        load_settings(ReleaseSettings, {"channel.min_patients": 0})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"kind": "deidentified", "channel": {"background": 0.3}},
            "channel.background applies to kind obfuscated, not to",
        ),
        (
            {"kind": "deidentified", "channel.min_patients": 5},
            "channel.min_patients applies to kind obfuscated or synthetic",
        ),
        (
            {"kind": "synthetic", "channel.n": "5"},
            "channel.n applies to kind obfuscated, not to",
        ),
        (
            {"kind": "deidentified", "review_on": "5.3.2027"},
            "review_on: must be a date such as 2027-01-31",
        ),
        (
            {"kind": "deidentified", "review_on": "2027-02-30"},
            "review_on: must be a date such as 2027-01-31",
        ),
        ({"kind": "nothing"}, "kind: one of obfuscated, deidentified, synthetic"),
    ],
)
def test_settings_that_a_release_cannot_have_are_refused(flags, message):
    with pytest.raises(UsageError, match=f"^{message}"):
        load_settings(ReleaseSettings, flags)


def test_settings_that_a_release_cannot_have_are_refused_in_the_file_and_by_set(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('kind = "deidentified"\n[lm]\nsize = "tiny"\n')
    with pytest.raises(
        UsageError,
        match=r"^c\.toml: lm\.size applies to kind synthetic, not to kind deidentified",
    ):
        load_settings(ReleaseSettings, {}, path)
    with pytest.raises(UsageError, match=r"^vectors\.window applies to kind obfuscated"):
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
    made = load_settings(
        ReleaseSettings, {"channel.n": "7"}, None, ["vectors.window=5", "channel.n=3-9", "label=x"]
    )
    assert (made.vectors.window, str(made.channel.n), made.label) == (5, "7", ("x",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "lm.layrs=2",
            r"^--set: this command has no setting lm\.layrs \(did you mean lm\.layers\?\)",
        ),
        ("layers=2", r"^--set: this command has no setting layers \(its name is lm\.layers\)"),
        ("window=2", r"\(its name is vectors\.window or lm\.window\)"),
        ("as=synthetic", r"\(its name is kind\)"),
        ("lm.layers=many", r"^--set lm\.layers: a value of the wrong type \(write a whole number"),
        ("lm.layers", r"^--set lm\.layers: no value \(write KEY=VALUE\)"),
        ("lm=3", r"^--set: lm is a group of settings \(set lm\.model and others\)$"),
        ("synthetic=x", r"^--set: synthetic is a group of settings"),
        ("lm.layers=0", r"^lm\.layers: must be 1 or more"),
        ("lm.model=lute", r"^lm\.model: one of unigram, ngram, lstm, pretrained"),
    ],
)
def test_a_mistake_in_set_names_the_key(text, message):
    with pytest.raises(UsageError, match=message):
        load_settings(ReleaseSettings, {"kind": "synthetic"}, None, [text])


def test_a_file_sets_no_group_to_a_value_and_no_setting_by_another_name(tmp_path):
    path = tmp_path / "c.toml"
    for text, message in (
        ('kind = "synthetic"\nlm = 3\n', r"^c\.toml: lm is a group of settings"),
        ('as = "synthetic"\n', r"^c\.toml: this command has no setting as \(its name is kind\)"),
        ("dim = 12\n", r"^c\.toml: .* no setting dim \(its name is vectors\.dim\)"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=message):
            load_settings(ReleaseSettings, {}, path)
    with pytest.raises(UsageError, match=r"^lm is a group"):
        load_settings(ReleaseSettings, {"kind": "synthetic", "lm": 3})


def test_flags_win_over_the_file(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('label = ["a", "b"]\n[channel]\nn = "5"\nlayout = "keep"\n')
    settings = load_settings(ReleaseSettings, {"channel": {"n": "7", "layout": None}}, path)
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
    settings = ReleaseSettings(channel={"n": "5-9"}, label=("x",))
    assert ReleaseSettings.model_validate(settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize("text", ["0", "x", "9-3", "3-", "-3", "3-9-12", "1"])
def test_bad_ranges(text):
    with pytest.raises(UsageError, match=r"^channel\.n"):
        load_settings(ReleaseSettings, {"channel.n": text})


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
        load_settings(ReleaseSettings, {"vectors.dim": "qzxsecret"})
    assert "qzxsecret" not in str(caught.value)


def test_a_range_prints_as_it_is_written():
    assert [str(NeighbourRange(low=a, high=b)) for a, b in ((5, 5), (3, 14))] == ["5", "3-14"]


def test_shipped_files_are_named_by_config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config_names(ReleaseSettings) == ("paper", "strict")
    strict = load_settings(ReleaseSettings, {"channel.background": 0.7}, Path("strict"))
    assert (str(strict.channel.n), strict.channel.background) == ("7-20", 0.7)
    paper = load_settings(ReleaseSettings, {}, Path("paper"), ["vectors.epochs=2"])
    assert (paper.vectors.algorithm, paper.vectors.epochs) == ("cbow", 2)
    assert paper.channel.layout == "plain"
    with pytest.raises(UsageError, match=r"^lax: the file does not exist.*one of paper, strict"):
        load_settings(ReleaseSettings, {}, Path("lax"))
    with pytest.raises(UsageError, match=r"^strict: channel\.n applies to kind obfuscated"):
        load_settings(ReleaseSettings, {"kind": "deidentified"}, Path("strict"))
    (tmp_path / "strict").write_text("channel.n = 4\n")
    assert str(load_settings(ReleaseSettings, {}, Path("strict")).channel.n) == "4"


INSTRUMENTS: Members[str] = Members("instrument", {"drum": "x:DRUM", "horn": "x:HORN"})


class _Band(Settings):
    instrument: str = setting("drum", "What is played.", members=INSTRUMENTS)
    also: tuple[str, ...] = setting((), "What else is played.", members=INSTRUMENTS)
    volume: float = setting(1.0, "How loud.", gt=0)


class _Concert(Settings):
    band: _Band = group(_Band)
    seats: int = setting(10, "Seats.")


def test_a_choice_takes_its_members_only_and_imports_none():
    made = load_settings(_Concert, {"band.instrument": "horn", "band": {"volume": 2.5}})
    assert made.named_values() == {
        "band.instrument": "horn",
        "band.also": (),
        "band.volume": 2.5,
        "seats": 10,
    }
    assert made.record()["band.also"] == []
    for given in ({"band.instrument": "lute"}, {"band.also": ("horn", "lute")}):
        with pytest.raises(UsageError, match=r"^band\.(instrument|also): one of drum, horn$"):
            load_settings(_Concert, given)
    with pytest.raises(UsageError, match=r"^band\.volume: must be above 0"):
        load_settings(_Concert, {"band.volume": -1})
    with pytest.raises(UsageError, match=r"unknown instrument 'lute' \(use one of drum, horn\)"):
        INSTRUMENTS.get("lute")


def test_a_copy_with_changes_by_name_or_nested_keeps_what_was_given():
    made = _Concert(band={"instrument": "horn"})
    assert made.given_values() == {"band.instrument": "horn"}
    for changed in (made.but(band={"volume": 3.0}), made.changed({"band.volume": 3.0})):
        assert changed.given_values() == {"band.instrument": "horn", "band.volume": 3.0}
    assert made.but(band=_Band(), seats=1) == _Concert(seats=1)


@pytest.mark.parametrize(
    "text", ["force = true", "workers = 2", 'label = ["a"]', "[note]\ntext = 'a'"]
)
def test_a_key_that_the_command_lacks_is_refused_in_the_file_too(tmp_path, text):
    class Some(Settings):
        notes: NotesSettings = group(NotesSettings)

    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(UsageError, match=r"c\.toml: this command has no setting"):
        load_settings(Some, {}, tmp_path / "c.toml")


def test_values_of_a_list_add_up():
    made = load_settings(
        ReleaseSettings, {}, None, ["label=a", "label=b", 'keep=["x", "y"]', "kind=synthetic"]
    )
    assert (made.label, made.keep, made.kind) == (("a", "b"), ("x", "y"), "synthetic")
