"""Limits of each risk and audience, and the file that an officer replaces them with."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from clinveil.core import UsageError
from clinveil.report import AUDIENCES, CHECKS, UNLIMITED, Limits, limits_file

RISKS = sorted(Limits.read().rules("agreement"))


def written(folder, text):
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("risk", RISKS)
def test_every_limit_has_a_reason_and_a_sentence_for_the_agreement(risk):
    for audience in AUDIENCES:
        limit = Limits.read().rules(audience)[risk]
        assert limit.reason.endswith(".") and limit.unit and not limit.changed
        assert limit.covers.startswith("The recipient ") and limit.covers.endswith(".")


@pytest.mark.parametrize("risk", RISKS)
def test_the_public_never_gets_more_than_a_recipient_under_an_agreement(risk):
    one, public = (Limits.read().rules(audience)[risk].most for audience in AUDIENCES)
    assert public is not None
    assert one is None or public <= one


def test_the_limits_by_hand():
    agreement, public = (Limits.read().rules(audience) for audience in AUDIENCES)
    unlimited = {risk for risk, limit in agreement.items() if limit.most is None}
    assert unlimited == {"words", "ten_words", "other_notes", "public_texts", "membership"}
    assert {public[risk].most for risk in unlimited} == {0.09}
    assert agreement["names"].most == agreement["identifiers_missed"].most == 0.05


def test_every_risk_of_a_gate_has_a_limit():
    path = files("clinveil.releases").joinpath("gates.toml")
    entries = tomllib.loads(path.read_text(encoding="utf-8")).values()
    risks = {entry.get("risk", CHECKS) for entry in entries}
    assert risks - {CHECKS} <= set(RISKS)
    assert set(RISKS) <= risks


def test_an_officers_file_replaces_only_what_it_has(tmp_path):
    path = written(
        tmp_path, '[names]\nagreement = 0.1\n[words]\nagreement = 0.2\npublic = "none"\n'
    )
    limits = Limits.read(path)
    default = Limits.read()
    names = limits.rules("agreement")["names"]
    assert (names.most, names.default, names.changed) == (0.1, 0.05, True)
    assert not limits.rules("public")["names"].changed
    words = limits.rules("public")["words"]
    assert (words.most, words.default, words.changed) == (None, 0.09, True)
    assert limits.rules("agreement")["words"].changed
    for audience in AUDIENCES:
        for risk, limit in default.rules(audience).items():
            if risk not in ("names", "words"):
                assert limits.rules(audience)[risk] == limit


def test_the_printed_file_changes_nothing(tmp_path):
    assert Limits.read(written(tmp_path, limits_file())) == Limits.read()


def test_an_officers_reason_replaces_that_of_the_package(tmp_path):
    limits = Limits.read(
        written(tmp_path, '[names]\npublic = 0.01\nreason = "Decided on 3 May."\n')
    )
    assert limits.rules("public")["names"].reason == "Decided on 3 May."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[nmes]\nagreement = 0.1\n", "unknown risk nmes"),
        ("[names]\nagremeent = 0.1\n", "unknown key agremeent of names"),
        ("names = 0.1\n", "names is not a table"),
        ("[names]\nagreement = 1.2\n", "names: agreement = 1.2"),
        ("[names]\npublic = -0.1\n", "names: public = -0.1"),
        ('[names]\npublic = "any"\n', "names: public = 'any'"),
        ("[names]\npublic = true\n", "names: public = True"),
        ("[names]\npublic = nan\n", "names: public = nan"),
        ("[names]\npublic = [0.1]\n", "names: public ="),
        ("[copies]\npublic = 1\n", "copies: public = 1"),
        ("[own_identifiers]\nagreement = 0.5\n", "own_identifiers: agreement = 0.5"),
        ("[names\n", "is not TOML"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path, text, words):
    with pytest.raises(UsageError) as caught:
        Limits.read(written(tmp_path, text))
    assert words in str(caught.value)
    assert caught.value.hint
    assert caught.value.exit_code == 2


def test_a_missing_file_and_one_that_is_not_text_are_refused(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        Limits.read(tmp_path / "absent.toml")
    path = tmp_path / "own.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is not TOML"):
        Limits.read(path)


def test_none_is_the_word_for_no_limit(tmp_path):
    path = written(tmp_path, f'[copies]\nagreement = "{UNLIMITED}"\n')
    assert Limits.read(path).rules("agreement")["copies"].most is None


def test_init_config_prints_the_limits(capsys):
    from clinveil.cli import main

    assert main(["init-config", "limits"]) == 0
    assert capsys.readouterr().out == limits_file()
