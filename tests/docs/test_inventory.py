"""Nothing that the command line once promised is lost without a word in `tests/inventory/renamed.json`."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

import inventory  # noqa: E402

BEFORE = json.loads((TESTS / "inventory" / "before.json").read_text(encoding="utf-8"))
RENAMED = json.loads((TESTS / "inventory" / "renamed.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def now():
    return inventory.listing()


def test_nothing_is_lost(now):
    assert inventory.missing(BEFORE, now, RENAMED) == []


def test_the_listing_sees_what_there_is(now):
    assert {"release", "attack names", "study jamia-2020"} <= now["commands"].keys()
    release = now["commands"]["release"]
    assert "-n" in release["options"]["--n"]["flags"]
    assert "min_patients" in release["toml"] and "out" not in release["toml"]
    assert {2, 3, 4, 5, 6} <= set(now["exit_codes"])
    assert "manifest.json" in now["files"]


def doctored(now, change):
    copied = copy.deepcopy(now)
    change(copied)
    return inventory.missing(now, copied, {})


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda n: n["commands"].pop("verify"), "command verify"),
        (lambda n: n["commands"]["embed"]["options"].pop("--dim"), "option embed --dim"),
        (lambda n: n["commands"]["embed"]["options"]["--dim"].update(default="7"), "default embed --dim = 100"),
        (
            lambda n: n["commands"]["embed"]["options"]["--algorithm"]["choices"].clear(),
            "choice embed --algorithm cbow",
        ),
        (lambda n: n["commands"]["release"]["toml"].remove("memo"), "toml release memo"),
        (lambda n: n["commands"]["report"]["arguments"].clear(), "argument report 1 required nargs 1"),
        (lambda n: n["measures"].pop("attack.inversion"), "measure attack.inversion"),
        (lambda n: n["measures"]["attack.inversion"].remove("rare"), "row attack.inversion rare"),
        (lambda n: n["measure_strings"].remove("attack.chain"), "string attack.chain"),
        (lambda n: n["files"].remove("crosswalk.parquet"), "file crosswalk.parquet"),
        (lambda n: n["exit_codes"].remove(4), "exit 4"),
        (lambda n: n["python"].remove("Key"), "python Key"),
    ],
)
def test_whatever_goes_is_missed(now, change, line):
    assert line in doctored(now, change)


def test_a_renaming_needs_a_name_that_is_there_and_a_reason(now):
    after = copy.deepcopy(now)
    after["exit_codes"].remove(4)
    assert inventory.missing(now, after, {"exit 4": ["exit 5", "one code for both"]}) == []
    assert inventory.missing(now, after, {"exit 4": ["", "never used"]}) == []
    assert inventory.missing(now, after, {"exit 4": ["exit 9", "no such code"]}) == ["exit 4"]
    assert inventory.missing(now, after, {"exit 4": ["exit 5", " "]}) != []


def test_a_name_put_together_at_run_time_is_still_there(now):
    after = copy.deepcopy(now)
    after["measure_strings"] = [n for n in now["measure_strings"] if not n.startswith("attack.pdtp_")]
    assert "string attack.pdtp_sign" in inventory.missing(now, after, {})
    assert inventory.missing(now, {**after, "measure_strings": [*after["measure_strings"], "attack.pdtp_{}"]}, {}) == []
