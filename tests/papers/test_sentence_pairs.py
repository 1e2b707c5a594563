"""Labelled sentence pairs: every layout, every bad file, and splits that keep sentences on one
side.
"""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.clinicalnlp_2019.sentence_pairs import (
    SentencePairs,
    nli_parts,
    read_sentence_pairs,
)

from clinveil.core import InputError

PARSE = "( ( The -LRB- pt -RRB- ) ( ( is caf\u00e9 ) . ) )"


def pairs_of(rows, name="train.csv"):
    premises, hypotheses, labels = zip(
        *[(tuple(a.split()), tuple(b.split()), c) for a, b, c in rows], strict=True
    )
    return SentencePairs(name, premises, hypotheses, labels)


def many(n, label=lambda i: "ab"[i % 2]):
    return pairs_of([(f"p{i} x", f"h{i} y", label(i)) for i in range(n)])


def test_mednli_layout(tmp_path):
    rows = [
        {
            "gold_label": "entailment",
            "sentence1_binary_parse": PARSE,
            "sentence2_binary_parse": "( No fever )",
        },
        {"gold_label": "-", "sentence1_binary_parse": PARSE, "sentence2_binary_parse": "( No )"},
        {"gold_label": None, "sentence1_binary_parse": PARSE, "sentence2_binary_parse": "( No )"},
    ]
    path = tmp_path / "mli_train_v1.jsonl"
    path.write_text(
        "\n".join(json.dumps({**row, "sentence1": "other", "pairID": 7}) for row in rows)
    )
    found = read_sentence_pairs(path)
    assert found.premises == (("The", "(", "pt", ")", "is", "caf", "."),)
    assert found.hypotheses == (("No", "fever"),)
    assert (found.labels, found.dropped) == (("entailment",), 2)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "sick.csv",
            "pair_ID,sentence_A,sentence_B,entailment_judgment\n1,A dog's here,No dog,NEUTRAL\n",
        ),
        ("sick.tsv", "sentence_A\tsentence_B\tentailment_label\nA dog's here\tNo dog\tNEUTRAL\n"),
        ("rqe.csv", "pid,label,chq,faq\n1,NEUTRAL,A dog's here,No dog\n"),
        (
            "own.csv",
            "sentence1,sentence2,label\nA dog's here,No dog,NEUTRAL\nA dog's here,No dog,\n",
        ),
        ("own.jsonl", '{"premise": "A dog\'s here", "hypothesis": "No dog", "label": "NEUTRAL"}'),
        ("own.csv.gz", "sentence1,sentence2,label\nA dog's here,No dog,NEUTRAL\n"),
    ],
)
def test_layouts(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    found = read_sentence_pairs(path)
    assert found.premises == (("A", "dog", "'", "s", "here"),)
    assert found.hypotheses == (("No", "dog"),)
    assert found.labels == ("NEUTRAL",)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("x.csv", b"", "empty"),
        ("x.csv", b"one,two,three\na,b,c\n", "known layout"),
        ("x.csv", b"sentence1,sentence2,label\n", "no labelled sentence pair"),
        ("x.csv", b"sentence1,sentence2,label\na,b,-\n", "no labelled sentence pair"),
        ("x.csv", b"sentence1,sentence2,label\na,\xe9zyqquavex,c\n", "row 1"),
        ("x.jsonl", b"{'no json'\n", "row 1"),
        ("x.pkl", b"", "unknown file type"),
    ],
)
def test_bad_files_give_one_clear_line(tmp_path, name, data, says):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=says) as caught:
        read_sentence_pairs(tmp_path / name)
    assert "zyqquavex" not in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=80, max_size=120),
    st.integers(0, 9),
)
def test_no_sentence_stands_on_two_sides(links, seed):
    pairs = pairs_of([(f"s{a}", f"S{b}", "ab"[i % 2]) for i, (a, b) in enumerate(links)])
    try:
        parts = nli_parts(pairs, None, None, np.random.default_rng(seed))
    except InputError as error:
        assert "too few" in str(error)
        return
    assert len(parts.train) + len(parts.dev) + len(parts.test) == len(pairs)
    sides = [{s[0].lower() for s in part.premises} for part in (parts.train, parts.dev, parts.test)]
    assert not sides[0] & sides[2]
    assert not sides[1] & sides[2]
    if parts.grouping == "either sentence":
        assert parts.numbers["test_hypotheses_seen"] == parts.numbers["test_premises_seen"] == 0


def test_linked_pairs_fall_back_to_premises():
    pairs = pairs_of([(f"p{i // 2}", "the same answer", "ab"[i % 2]) for i in range(60)])
    parts = nli_parts(pairs, None, None, np.random.default_rng(0))
    assert parts.grouping == "premise"
    assert parts.numbers["test_premises_seen"] == 0
    assert parts.numbers["test_hypotheses_seen"] == 1
    assert parts.numbers["largest_group"] == 2


def test_given_files_are_kept_and_what_they_share_is_counted():
    train = pairs_of([("a b", "c", "x"), ("d", "e", "y")])
    test = pairs_of([("A b", "C", "x"), ("e", "new", "y"), ("new", "newer", "y")])
    parts = nli_parts(train, train, test, np.random.default_rng(0))
    assert parts.test is test
    assert parts.grouping == "files as given"
    assert parts.numbers["test_pairs_seen"] == pytest.approx(1 / 3)
    assert parts.numbers["test_premises_seen"] == pytest.approx(2 / 3)
    assert parts.numbers["test_hypotheses_seen"] == pytest.approx(1 / 3)


def test_one_label_is_refused():
    with pytest.raises(InputError, match="the same label"):
        nli_parts(many(30, lambda _: "a"), None, None, np.random.default_rng(0))


def test_too_few_pairs_are_refused():
    with pytest.raises(InputError, match="too few pairs"):
        nli_parts(many(6), None, None, np.random.default_rng(0))


def test_a_label_that_training_lacks():
    parts = nli_parts(
        many(20), many(4), pairs_of([("a", "b", "zyqquavex")], "test.csv"), np.random.default_rng(0)
    )
    with pytest.raises(InputError, match=r"test\.csv: 1 pairs") as caught:
        parts.targets(parts.test)
    assert "zyqquavex" not in str(caught.value)


def test_sick(real_data):
    pairs = read_sentence_pairs(real_data("nli/sick_train.csv.gz"))
    assert len(pairs) == 4500
    parts = nli_parts(pairs, None, None, np.random.default_rng(0))
    assert parts.classes == ["CONTRADICTION", "ENTAILMENT", "NEUTRAL"]
    assert parts.grouping == "either sentence"
    assert parts.numbers["test_hypotheses_seen"] == 0
