"""Agreement of two reviewers: kappa and F1 as counted by hand and by scikit-learn, intervals by
note.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from clinveil.cli import main
from clinveil.utility.evaluations.agreement import f1, kappa


def drop(place):
    return {"place": list(place), "verdict": "drop"}


def review(open_desk, reviewer, decisions, count=5):
    with open_desk(reviewer) as desk:
        for at in range(count):
            words = decisions.get(at, "")
            text = desk.entries[at].note.text
            place = text.find(words), text.find(words) + len(words)
            desk.act(at, [drop(place)] if words else [], done=True)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_kappa_is_that_of_scikit_learn(pairs):
    one, two = zip(*pairs, strict=True)
    sums = [
        pairs.count(each) for each in ((True, True), (True, False), (False, True), (False, False))
    ]
    ours = kappa(np.array(sums))
    if len(set(one) | set(two)) == 1:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(cohen_kappa_score(one, two))


def test_f1_counts_spans_of_both():
    assert f1(np.array([3, 4, 5])) == pytest.approx(6 / 9) and np.isnan(f1(np.array([0, 0, 0])))


def test_two_reviewers_who_differ_in_one_span(open_desk, made, capsys):
    review(open_desk, "first", {})
    review(open_desk, "second", {0: "Xiuyingsecret"})
    assert main(["evaluate", "agreement", "out.parquet", "--json", "-"]) == 0
    words, spans = json.loads(capsys.readouterr().out)["findings"]
    assert (words["measure"], spans["measure"]) == ("utility.agreement", "utility.agreement_f1")
    assert 0 < words["low"] < words["value"] < 1 and words["chance"] == 0
    assert words["numbers"] == {"notes": 5, "same_notes": 4}
    n = spans["n"]
    assert spans["count"] == n - 1 and spans["value"] == pytest.approx(2 * (n - 1) / (2 * n - 1))
    assert main(["evaluate", "agreement", "out.parquet"]) == 0
    assert "reviewers first and second" in capsys.readouterr().out


def test_full_agreement_is_no_certainty_and_open_notes_do_not_count(open_desk, made, capsys):
    review(open_desk, "anna", {0: "Xiuyingsecret"})
    review(open_desk, "ben", {0: "Xiuyingsecret"}, count=3)
    assert main(["evaluate", "agreement", "out.parquet", "--json", "-"]) == 0
    for finding in json.loads(capsys.readouterr().out)["findings"]:
        assert (
            finding["value"] == 1
            and 0.2 < finding["low"] < 0.5
            and finding["numbers"]["notes"] == 3
        )


def test_fewer_or_more_than_two_are_said(open_desk, made, capsys):
    def said(*flags):
        capsys.readouterr()
        return main(["evaluate", "agreement", "out.parquet", *flags]), capsys.readouterr().err

    assert said() == (
        2,
        (
            "clinveil: agreement requires two reviewers, and there are 0 (run clinveil review --set"
            " reviewer=SECOND)\n"
        ),
    )
    for name in ("a", "b", "c"):
        with open_desk(name):
            pass
    assert "there are 3 (pass --set reviewer=A --set reviewer=B" in said()[1]
    assert said("--set", "reviewer=a", "--set", "reviewer=c")[1].startswith(
        "clinveil: no note was finished by both reviewers"
    )
    assert "there are 1" in said("--set", "reviewer=a", "--set", "reviewer=a")[1]
    assert said("--set", "reviewer=a", "--set", "reviewer=x")[1].startswith(
        "clinveil: x.jsonl: cannot be read"
    )
