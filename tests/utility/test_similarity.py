"""Word similarity: by hand, against SciPy, with planted truth, and every way in which a word can be
missing.
"""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
import scipy.stats

from clinveil.cli import main
from clinveil.core import InputError
from clinveil.utility import PairList, SimilarityTask, similarity
from clinveil.utility.pairs import pair_vectors
from clinveil.vectors import Vectors, save_vectors
from clinveil.vectors.table import Subwords, hashed, n_grams


def vectors_of(words, **more):
    rows = {"a": [1, 0], "b": [0, 1], "c": [1, 1], "d": [-1, 0], "e": [0, 0]}
    matrix = np.array([rows.get(word, [1, 2]) for word in words], dtype=np.float32)
    return Vectors(list(words), matrix, **more)


def pairs_of(*rows):
    return PairList(
        "list",
        tuple((one, other) for one, other, _ in rows),
        np.array([float(s) for *_, s in rows]),
    )


def planted(n=40, noise=0.1, dim=20, seed=0):
    """Vectors whose cosines are people's scores but for noise."""
    rng = np.random.default_rng(seed)
    words = [f"{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(2 * n)]
    vectors = Vectors(words, rng.normal(size=(2 * n, dim)).astype(np.float32))
    terms = tuple((words[2 * i], words[2 * i + 1]) for i in range(n))
    truth = pair_vectors(vectors, PairList("x", terms, np.zeros(n))).cosines()
    return vectors, PairList("planted", terms, truth + rng.normal(0, noise, n))


def one(findings, measure="utility.similarity", series=""):
    return next(f for f in findings if f.measure == measure and f.series == series)


def test_cosines_by_hand():
    pairs = pairs_of(
        ("a", "c", 1),
        ("A", "d", 1),
        ("a b", "c", 1),
        ("a", "zz", 1),
        ("a", "e", 1),
        ("...", "a", 1),
    )
    found = pair_vectors(vectors_of("abcde"), pairs).cosines()
    assert found[:3] == pytest.approx([np.sqrt(0.5), -1.0, 1.0])
    assert np.isnan(found[3:]).all()


def test_a_term_of_several_words_is_the_mean_of_those_that_have_vectors():
    found = pair_vectors(vectors_of("ab"), pairs_of(("a zz b", "a", 1))).cosines()
    assert found == pytest.approx([np.sqrt(0.5)])
    rows = pairs_of(("a zz b", "a", 1), ("a", "b", 2), ("b", "b", 3))
    assert one(similarity(vectors_of("ab"), rows, np.random.default_rng(0))).numbers["partial"] == 1


def test_paper_cs_protocol_takes_single_words_only():
    found = pair_vectors(
        vectors_of("abc"), pairs_of(("a b", "c", 1), ("a", "c", 1)), protocol="clinicalnlp"
    ).cosines()
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(np.sqrt(0.5))


def with_subwords(words, unknown):
    """fastText vectors that know the n-grams of one more word."""
    grams = sorted({hashed(g) % 997 for g in n_grams(unknown, 3, 6)})
    matrix = np.tile(np.array([[0, 1]], dtype=np.float32), (len(grams), 1))
    return vectors_of(words, subwords=Subwords(np.array(grams), matrix, 997))


def test_a_pair_with_an_unknown_word_is_compared_among_fasttexts_vectors():
    fast = with_subwords("ab", "zz")
    pairs = pairs_of(("zz", "b", 1), ("zz", "a", 1), ("c", "a", 1))
    found = pair_vectors(vectors_of("abc"), pairs, subwords=fast).cosines()
    assert found == pytest.approx([1.0, 0.0, np.sqrt(0.5)])
    assert np.isnan(pair_vectors(vectors_of("abc"), pairs).cosines()[:2]).all()


def test_every_number_is_reported():
    fast = with_subwords("ab", "zz")
    rows = (
        ("zz", "b", 3),
        ("a", "c", 2),
        ("a", "b", 1),
        ("a b", "c", 2.5),
        ("a", "---", 1),
        ("d", "a", 0),
    )
    found = one(
        similarity(
            vectors_of("abcd"),
            pairs_of(*rows),
            np.random.default_rng(0),
            SimilarityTask(subwords=fast),
        ),
        series="all pairs",
    )
    names = (
        "pairs",
        "asked",
        "single",
        "covered",
        "by_subwords",
        "partial",
        "scored",
        "left_out",
        "random",
    )
    assert [found.numbers[name] for name in names] == [6, 6, 4, 5, 1, 0, 5, 1, 0]
    task = SimilarityTask("clinicalnlp", frequencies=dict.fromkeys("abcdz", 20))
    pairs = pairs_of(*rows, ("d", "z", 1))
    random = one(similarity(vectors_of("abcd"), pairs, np.random.default_rng(0), task))
    assert [
        random.numbers[name] for name in ("asked", "covered", "scored", "left_out", "random")
    ] == [4, 3, 4, 0, 1]


def test_a_pair_of_a_term_with_itself_is_counted_for_the_control_keeps_it():
    """Two such pairs of UMNSRS lift the control to 0.07: they are alike whatever the vectors
    say.
    """
    vectors, pairs = planted()
    rows = (*pairs.terms, ("aa", "aa"), ("ab", "ab"))
    found = one(
        similarity(
            vectors, PairList("x", rows, np.append(pairs.scores, [3, 3])), np.random.default_rng(0)
        )
    )
    assert found.numbers["identical"] == 2
    assert found.control > 0.2


def test_chance_lies_within_its_permutation_interval_and_the_value_outside():
    vectors, pairs = planted()
    found = one(similarity(vectors, pairs, np.random.default_rng(1)))
    assert found.numbers["chance_low"] < 0 < found.numbers["chance_high"] < found.value
    # 95 % of a correlation of 40 unrelated pairs: about 1.96 / sqrt(39)
    assert found.numbers["chance_high"] == pytest.approx(1.96 / np.sqrt(39), abs=0.05)


def test_the_control_deals_vectors_out_in_both_spaces_and_keeps_the_coverage():
    vectors, pairs = planted()
    grams = {w: sorted({hashed(g) % 99991 for g in n_grams(w, 3, 6)}) for w in vectors.words}
    owner = {bucket: row for row, word in enumerate(vectors.words) for bucket in grams[word]}
    buckets = np.array(sorted(owner))
    matrix = vectors.matrix[[owner[b] for b in buckets.tolist()]]
    few = Vectors(vectors.words[:40], vectors.matrix[:40])
    fast = Vectors(
        ["qqq"], np.ones((1, 20), dtype=np.float32), subwords=Subwords(buckets, matrix, 99991)
    )
    found = one(
        similarity(few, pairs, np.random.default_rng(0), SimilarityTask(subwords=fast)),
        series="all pairs",
    )
    assert found.n == 40
    assert found.numbers["by_subwords"] == 20
    assert abs(found.control) < 0.1 < found.low


def test_the_same_seed_says_the_same():
    vectors, pairs = planted()
    fewer = Vectors(vectors.words[:40], vectors.matrix[:40])
    task = SimilarityTask("clinicalnlp", frequencies=dict.fromkeys(vectors.words, 20))
    said = [similarity(fewer, pairs, np.random.default_rng(7), task) for _ in range(2)]
    assert said[0] == said[1]


def test_subwords_are_counted_and_the_figure_without_them_stands_beside():
    fast = with_subwords("ab", "zz")
    pairs = pairs_of(("zz", "b", 3), ("a", "c", 2), ("a", "b", 1), ("c", "b", 2.5))
    found = similarity(
        vectors_of("abc"), pairs, np.random.default_rng(0), SimilarityTask(subwords=fast)
    )
    assert one(found, series="all pairs").numbers["by_subwords"] == 1
    assert one(found, series="all pairs").n == 4
    assert one(found, series="pairs that need no subwords").n == 3


def test_vectors_without_subwords_cannot_lend_them():
    with pytest.raises(InputError, match="fasttext"):
        pair_vectors(vectors_of("ab"), pairs_of(("a", "b", 1)), subwords=vectors_of("ab")).cosines()


def test_planted_truth_is_found_and_the_control_is_at_chance():
    vectors, pairs = planted()
    found = one(similarity(vectors, pairs, np.random.default_rng(1)))
    assert found.low > 0.6
    assert found.value == pytest.approx(
        scipy.stats.pearsonr(pair_vectors(vectors, pairs).cosines(), pairs.scores)[0]
    )
    assert found.p == 1e-3
    assert abs(found.control) < 0.1
    assert found.chance == 0


def test_scores_that_have_nothing_to_do_with_the_vectors_are_no_evidence():
    vectors, pairs = planted()
    said = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        random = PairList("r", pairs.terms, rng.normal(size=len(pairs)))
        found = one(similarity(vectors, random, rng, SimilarityTask(draws=300)))
        if found.value is None:
            said += 1
            assert found.why.startswith("no evidence") and (found.low, found.high) == (
                None,
                None,
            )
            assert found.numbers["correlation"] <= found.numbers["chance_high"] and found.p > 0.05
    assert said >= 17  # of 20, 19 are expected


def test_missing_pairs_are_left_out_or_random_by_protocol():
    vectors, pairs = planted()
    fewer = Vectors(vectors.words[:40], vectors.matrix[:40])  # 20 of 40 pairs
    random = SimilarityTask("clinicalnlp", frequencies=dict.fromkeys(vectors.words, 20))
    found = [
        one(similarity(fewer, pairs, np.random.default_rng(0), task))
        for task in (SimilarityTask(), random)
    ]
    assert [each.n for each in found] == [20, 40]
    assert [each.numbers["covered"] for each in found] == [20] * 2
    assert found[0].value > found[1].value


def test_paper_cs_random_similarities_are_averaged():
    vectors, pairs = planted()
    fewer = Vectors(vectors.words[:40], vectors.matrix[:40])
    counts = dict.fromkeys(vectors.words, 20)
    values = [
        one(
            similarity(
                fewer,
                pairs,
                np.random.default_rng(s),
                SimilarityTask(protocol="clinicalnlp", frequencies=counts),
            )
        ).value
        for s in range(5)
    ]
    assert np.std(values) < 0.03  # of one draw alone it is about 0.15


def test_pairs_are_chosen_by_counts_in_the_real_text():
    pairs = pairs_of(("a", "b", 1), ("a", "c", 1), ("a b", "a", 1), ("B", "a", 1))
    task = SimilarityTask("clinicalnlp", frequencies={"a": 20, "b": 20, "c": 19})
    assert task.wanted(pairs).tolist() == [True, False, False, True]
    with pytest.raises(InputError, match="--notes"):
        similarity(
            vectors_of("abc"),
            pairs,
            np.random.default_rng(0),
            SimilarityTask(protocol="clinicalnlp"),
        )


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([("zz", "a", 1), ("a", "b", 2), ("a", "c", 3)], "no evidence: 2 of 3 pairs"),
        ([("a", "b", 1), ("a", "c", 1), ("c", "d", 1)] * 7, "are constant"),
        ([("zz", "yy", 1)], "no evidence: 0 of 1"),
        (
            [("a", "b", 1), ("a", "c", 2), ("c", "d", 3)] * 6 + [("a", "b", 1)],
            "no evidence: 19 of 19",
        ),
    ],
)
def test_what_cannot_be_correlated_says_why(rows, why):
    found = one(similarity(vectors_of("abcd"), pairs_of(*rows), np.random.default_rng(0)))
    assert found.value is None
    assert why in found.why


@pytest.fixture
def files(tmp_path):
    vectors, pairs = planted()
    save_vectors(vectors, tmp_path / "v")
    rows = (f"{a},{b},{s}" for (a, b), s in zip(pairs.terms, pairs.scores.tolist(), strict=True))
    (tmp_path / "pairs.csv").write_text("\n".join(["term1,term2,score", *rows]))
    return tmp_path


def test_command(files, capsys):
    arguments = shlex.split(
        f"evaluate similarity {files / 'v'} --pairs {files / 'pairs.csv'} --seed 3"
    )
    assert main([*arguments, "--json", "-"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["findings"][0]["numbers"]["covered"] == 40
    assert said["seed"] == 3
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "pairs: 40 pairs, 40 used (40 of single words), 40 covered" in out


def test_command_of_paper_c_needs_counts(files, capsys):
    arguments = ["evaluate", "similarity", str(files / "v"), "--pairs", str(files / "pairs.csv")]
    assert main([*arguments, "--protocol", "clinicalnlp"]) == 3
    assert "--notes" in capsys.readouterr().err
    (files / "notes.csv").write_text(
        "note_id,text\n" + "\n".join(f"{i},aa ab ac" for i in range(30))
    )
    more = ["--protocol", "clinicalnlp", "--notes", str(files / "notes.csv"), "--json", "-"]
    assert main([*arguments, *more]) == 0
    finding = json.loads(capsys.readouterr().out)["findings"][0]
    assert finding["numbers"]["asked"] == 1


@pytest.mark.real
@pytest.mark.slow
def test_real_lists_on_real_notes_beat_chance(real_data, tmp_path, capsys):
    """Small and quick: two passes of skip-gram over MTSamples are enough for UMNSRS."""
    notes = real_data("notes/mtsamples.csv.gz")
    pairs = real_data("wordpairs/umnsrs_sim.csv")
    made = shlex.split(
        f"embed {notes} --set notes.id=doc_id --set notes.text=transcription -o {tmp_path / 'v'}"
    )
    assert (
        main(
            [
                *made,
                "--algorithm",
                "skipgram",
                "--set",
                "vectors.epochs=2",
                "--dim",
                "30",
                "--workers",
                "1",
                "--seed",
                "1",
            ]
        )
        == 0
    )
    capsys.readouterr()
    assert (
        main(shlex.split(f"evaluate similarity {tmp_path / 'v'} --pairs {pairs} --seed 1 --json -"))
        == 0
    )
    found = json.loads(capsys.readouterr().out)["findings"][0]
    assert found["numbers"]["pairs"] == 566
    assert 150 < found["numbers"]["covered"] < 400
    assert found["value"] > found["numbers"]["chance_high"]


def test_command_with_a_missing_list(files, capsys):
    assert (
        main(["evaluate", "similarity", str(files / "v"), "--pairs", str(files / "none.csv")]) == 3
    )
    assert capsys.readouterr().err.count("\n") == 1
