"""The registry of evaluations: each has help, inputs and flags, and takes paths or the data
itself.
"""

from __future__ import annotations

import numpy as np
import pytest

from clinveil.core import UsageError
from clinveil.corpus import memory_corpus
from clinveil.utility import EVALUATIONS, PairList
from clinveil.vectors import Vectors

ORDER = (
    "transfer",
    "similarity",
    "classification",
    "perplexity",
    "deidentification",
    "agreement",
)


def test_all_evaluations_are_registered_in_the_order_of_the_help():
    assert EVALUATIONS.names() == ORDER


@pytest.mark.parametrize("name", ORDER)
def test_flags_are_settings_and_arguments_come_before_options(name):
    kind = EVALUATIONS.get(name)
    assert kind.help() and set(kind.shown.split()) <= kind.declared().keys()
    options = [one.option for one in kind.inputs.values()]
    assert options == sorted(options, key=bool) and len({*filter(None, options)}) == sum(
        map(bool, options)
    )


def test_similarity_takes_vectors_and_pairs_as_data():
    vectors = Vectors(list("abcd"), np.eye(4, dtype=np.float32) + 0.1)
    pairs = PairList(
        "mine", (("a", "b"), ("a", "c"), ("b", "d"), ("a", "a")), np.array([1.0, 2.0, 3.0, 9.0])
    )
    done = EVALUATIONS.get("similarity")()({"vectors": vectors, "pairs": [pairs]}, seed=3)
    assert done.title == "vectors, protocol jamia (seed 3)"
    assert [f.measure for f in done.findings] == ["utility.similarity"]
    assert len(done.lines) == 1 and done.lines[0].startswith("mine: 4 pairs")


def test_deidentification_refuses_inputs_that_exclude_each_other():
    notes = memory_corpus([("n1", "p1", "Seen by Dr. Sarah Miller.")])
    with pytest.raises(UsageError, match="--grid cannot be combined with NOTES"):
        EVALUATIONS.get("deidentification")(grid=True)({"notes": notes})
