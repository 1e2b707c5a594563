"""Attack 1: hand-solved names, P values against enumeration and SciPy, planted truth, controls, the
maximum.
"""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.spatial.distance import cityblock, cosine, euclidean

from clinveil.attacks import NameTokens, rank_names
from clinveil.attacks.vectors._name_pairs import (
    NameRanking,
    _draw,
    n_permutations,
    name_permutation_test,
)
from clinveil.attacks.vectors._name_scores import attack_names, names_found
from clinveil.core import InputError
from clinveil.vectors import Vectors

SCIPY = {"cosine": cosine, "cityblock": cityblock, "euclidean": euclidean}
# Four people in two dimensions. Ann and Dale, Bob and Elms lie close together; the other two pairs
# far apart.
FOUR = [("Ann", "Dale"), ("Bob", "Elms"), ("Cid", "Ford"), ("Guy", "Hill")]
PLACES = {
    "ann": (1.0, 0.1), "dale": (1.0, 0.2), "bob": (0.1, 1.0), "elms": (0.22, 1.0),
    "cid": (-1.0, 0.3), "ford": (0.6, -1.0), "guy": (-0.7, -1.0), "hill": (1.0, 0.9),
}  # fmt: skip


def vectors(places, **more):
    return Vectors(list(places), np.array(list(places.values()), dtype=np.float32), **more)


def rng(seed=0):
    return np.random.default_rng(seed)


def by_measure(findings):
    return {finding.measure: finding for finding in findings}


def listed(places, metric, k):
    """The first k pairs of tokens by SciPy, ties alphabetical."""
    pairs = combinations(sorted(places), 2)
    return [
        set(p)
        for p in sorted(
            pairs, key=lambda p: (np.float32(SCIPY[metric](places[p[0]], places[p[1]])), p)
        )[:k]
    ]


def enumerated_p(names, top):
    """P over all ways to deal the surnames out anew, by plain counting."""
    true = sum({first, last} in top for first, last in names)
    lasts = [last for _, last in names]
    ways = [
        sum({f, last} in top for (f, _), last in zip(names, way, strict=True))
        for way in permutations(lasts)
    ]
    return true, float(np.mean([hits >= true for hits in ways])), float(np.mean(ways))


@pytest.mark.parametrize("metric", SCIPY)
@pytest.mark.parametrize("k", [1, 2, 4, 9, 28])
def test_four_names_by_hand(metric, k):
    lower = [(first.lower(), last.lower()) for first, last in FOUR]
    hits, p, mean = enumerated_p(lower, listed(PLACES, metric, k))
    names = NameTokens(FOUR)
    finding = attack_names(names, [rank_names(vectors(PLACES), names, metric, 28)], rng(), k=k)[0]
    assert finding.measure == "attack.names"
    assert finding.value == pytest.approx(hits / k)
    assert finding.chance == pytest.approx(4 / 28)
    assert finding.numbers["hits_by_chance"] == pytest.approx(k * 4 / 28)
    assert finding.numbers["ceiling"] == min(1, 4 / k)
    assert finding.p == pytest.approx(p)
    assert finding.numbers["repairings"] == 24
    assert finding.control == pytest.approx(mean / k)
    assert finding.low <= finding.value <= finding.high


def test_namesakes_count_once_as_pairs_and_apart_as_patients():
    names = NameTokens([("Ann", "Dale"), ("ANN", "Dále".replace("á", "a")), ("Bob", "Elms")])
    assert len(names.true_pairs) == 2
    places = {word: PLACES[word] for word in ("ann", "dale", "bob", "elms")}
    ranking = rank_names(vectors(places), names, "cosine", 6)
    assert names_found(names, ranking, 1).tolist() in ([0.5, 0.5, 0.0], [0.0, 0.0, 1.0])
    found = by_measure(attack_names(names, [ranking], rng(), k=2))
    assert found["attack.names"].count == 2
    assert found["attack.names_patients"].count == 3


def test_odd_names_are_counted_and_never_dropped_in_silence():
    names = NameTokens(
        [
            ("Cher",),
            ("J.", "Smith"),
            ("Mary-Ann", "O'Brien"),
            ("Ann", "Ann"),
            ("Xu", "Li"),
            ("王", "芳"),
        ]
    )
    assert names.lone == 3  # Cher; Smith, whose J is a letter; and a name of single characters
    assert names.letters == 3
    assert "j" not in names.forms
    assert "o" not in names.forms
    assert {"mary", "ann", "brien"} <= set(names.forms)
    assert len(names.true_pairs) == 3 + 1  # mary-ann-brien, xu-li; ann with herself is no pair
    findings = attack_names(
        names,
        [rank_names(vectors({"xu": (1, 0), "li": (1, 1), "ann": (0, 1)}), names, "cosine", 9)],
        rng(),
    )
    numbers = findings[0].numbers
    assert (numbers["name_tokens"], numbers["name_tokens_not_ranked"]) == (5, 2)
    assert (numbers["true_pairs"], numbers["true_pairs_ranked"], numbers["pairs"]) == (4, 1, 3)
    assert (numbers["k"], numbers["k_asked"]) == (3, 600)
    assert numbers["names_of_one_token"] == 3


def test_nothing_to_find_is_refused_in_one_line():
    lone = NameTokens([("Cher",), ("Sting",)])
    with pytest.raises(InputError, match="no name of two or more tokens"):
        attack_names(
            lone, [rank_names(vectors({"cher": (1, 0), "sting": (0, 1)}), lone, "cosine", 1)], rng()
        )
    with pytest.raises(InputError, match="only 1 of 8 name tokens"):
        rank_names(vectors({"ann": (1, 0)}), NameTokens(FOUR), "cosine", 5)
    with pytest.raises(InputError, match="NaN"):
        vectors({"ann": (float("nan"), 0), "dale": (0, 1)})
    assert NameTokens([]).forms == []


def people(n, seed):
    """n invented names of two or three tokens, with tokens in common."""
    draw = np.random.default_rng(seed)
    firsts = [f"first{c}" for c in "abcdefghijklmnop"]
    lasts = [f"last{i}x" for i in "abcdefghijklmnopqrstuvwxyz"]
    return [
        tuple(
            [
                str(draw.choice(firsts)),
                *([str(draw.choice(firsts))] if i % 3 == 0 else []),
                str(draw.choice(lasts)),
            ]
        )
        for i in range(n)
    ]


def planted(names, noise, seed=0):
    """Vectors in which every token lies near the middle of the people who bear it: truth is
    nearest.
    """
    draw = np.random.default_rng(seed)
    total = {}
    for name in names:
        centre = draw.normal(size=40)
        for form in {f for token in name for f in NameTokens([(token, "zz")]).forms if f != "zz"}:
            total[form] = total.get(form, 0) + centre
    return vectors({form: where + noise * draw.normal(size=40) for form, where in total.items()})


def unique_people(n):
    return [
        (
            f"f{'abcdefghij'[i // 10]}{'klmnopqrst'[i % 10]}",
            f"l{'abcdefghij'[i // 10]}{'klmnopqrst'[i % 10]}",
        )
        for i in range(n)
    ]


@pytest.mark.parametrize("metric", SCIPY)
def test_planted_truth_is_found(metric):
    names = NameTokens(unique_people(40))
    ranking = rank_names(planted(unique_people(40), 0.05), names, metric, 600)
    exact = by_measure(attack_names(names, [ranking], rng(), k=40, draws=199))["attack.names"]
    assert (exact.value, exact.p) == (1, pytest.approx(1 / 200))
    found = by_measure(attack_names(names, [ranking], rng(), draws=199))
    assert found["attack.names"].value == pytest.approx(40 / 600)  # the ceiling
    assert found["attack.names"].numbers["ceiling"] == pytest.approx(40 / 600)
    assert found["attack.names_patients"].value == 1


def test_vectors_that_know_nothing_score_as_the_control():
    given = people(120, 3)
    names = NameTokens(given)
    draw = np.random.default_rng(5)
    ps = []
    for _ in range(60):
        blind = vectors({form: draw.normal(size=8) for form in names.forms})
        test = name_permutation_test(
            names, [rank_names(blind, names, "cosine", 150)], 100, draw, draws=99
        )
        ps.append(float(test.p[0]))
    assert (
        np.mean(np.array(ps) <= 0.1) <= 0.2
    )  # a valid P: 0.1 but for noise (and ties make it smaller)
    assert 0.3 < np.mean(ps) < 0.85


def test_a_draw_of_repairings_agrees_with_all_of_them(monkeypatch):
    given = unique_people(6)
    names = NameTokens(given)
    ranking = rank_names(planted(given, 3.0), names, "cosine", 12)
    full = name_permutation_test(names, [ranking], 5, rng())
    assert full.exact
    assert len(full.null_hits) == n_permutations(names) == 720
    monkeypatch.setattr("clinveil.attacks.vectors._name_pairs.ENUMERATE", 0)
    drawn = name_permutation_test(names, [ranking], 5, rng(), draws=4000)
    assert not drawn.exact
    np.testing.assert_allclose(drawn.p, full.p, atol=0.03)
    np.testing.assert_allclose(drawn.null_hits.mean(axis=0), full.null_hits.mean(axis=0), atol=0.05)


def test_repairing_keeps_frequency_role_and_degree():
    names = NameTokens(people(90, 1))
    for _ in range(5):
        for group, tokens in zip(names.groups, _draw(names, rng(7)), strict=True):
            for column in range(tokens.shape[1]):
                np.testing.assert_array_equal(
                    np.sort(tokens[:, column]), np.sort(group.tokens[:, column])
                )
    assert any(
        (g.tokens != t).any() for g, t in zip(names.groups, _draw(names, rng(7)), strict=True)
    )


@pytest.mark.parametrize("k", [10, 75, 200])
def test_hits_and_the_maximum_against_a_plain_loop(k):
    """Three models under the same re-pairings; hits and maxima counted by sets and loops."""
    given = people(30, 2)
    names = NameTokens(given)
    draw = np.random.default_rng(4)
    rankings = [
        rank_names(vectors({f: draw.normal(size=5) for f in names.forms}), names, metric, 200)
        for metric in SCIPY
    ]
    test = name_permutation_test(names, rankings, k, rng(9), draws=50)
    tops = [{tuple(divmod(c, len(names.forms))) for c in r.codes[:k].tolist()} for r in rankings]

    def loop(groups):
        pairs = {
            tuple(sorted(p))
            for tokens in groups
            for row in tokens.tolist()
            for p in combinations(row, 2)
        }
        return [len(pairs & top) for top in tops]

    assert test.hits.tolist() == loop([g.tokens for g in names.groups])
    again = rng(9)
    null = np.array([loop(_draw(names, again)) for _ in range(50)])
    np.testing.assert_array_equal(test.null_hits, null)
    for model in range(3):
        over = sum(max(null[d]) >= test.hits[model] for d in range(50))
        assert test.adjusted_p[model] == pytest.approx((over + 1) / 51)
        alone = sum(null[d, model] >= test.hits[model] for d in range(50))
        assert test.p[model] == pytest.approx((alone + 1) / 51)
    assert (test.adjusted_p >= test.p).all()


def test_alphabetical_ties_favour_nobody():
    """All vectors equal: the list is alphabetical, and its hits are those of an alphabetical
    list.
    """
    names = NameTokens(FOUR)
    ranking = rank_names(vectors(dict.fromkeys(PLACES, (1.0, 2.0))), names, "euclidean", 28)
    assert [tuple(names.forms[t] for t in divmod(c, 8)) for c in ranking.codes[:3].tolist()] == [
        ("ann", "bob"), ("ann", "cid"), ("ann", "dale"),
    ]  # fmt: skip
    shuffled = rank_names(
        vectors(dict.fromkeys(reversed(PLACES), (1.0, 2.0))), names, "euclidean", 28
    )
    np.testing.assert_array_equal(ranking.codes, shuffled.codes)


def test_chance_of_a_patient_against_simulation():
    names = NameTokens(people(40, 8))
    blind = vectors({form: rng(1).normal(size=4) for form in names.forms[:-3]})
    ranking = rank_names(blind, names, "cosine", 10**6)
    finding = by_measure(attack_names(names, [ranking], rng(), k=60, draws=19))[
        "attack.names_patients"
    ]
    draw = np.random.default_rng(2)
    share = []
    for _ in range(800):
        codes = draw.permutation(ranking.codes)
        mixed = NameRanking(codes[:60], ranking.distances[:60], "cosine", ranking.ranked)
        share.append((names_found(names, mixed, 60) > 0).mean())
    assert finding.chance == pytest.approx(np.mean(share), abs=4 * np.std(share) / np.sqrt(800))


@pytest.mark.parametrize(
    ("hits", "low", "high"),
    [(0, 0, 0.00615), (1, 0.00004, 0.00929), (3, 0.00103, 0.01461)],
    ids=["0", "1", "3"],
)
def test_few_hits_have_the_interval_of_rare_events(hits, low, high):
    """The paper's 600 pairs against 200 names of three tokens: by bootstrap 0 hits gave 0-1.38 %, 3
    gave 0-1.17.
    """
    letters = "abcdefghij"
    forms = [f"{a}{b}{c}" for a in letters for b in letters for c in letters][:600]
    names = NameTokens([tuple(forms[row : row + 3]) for row in range(0, 600, 3)])
    true = names.true_pairs[:: len(names.true_pairs) // 3][:hits]
    false = names.code(np.zeros(597, dtype=np.int64), np.arange(3, 600))
    more = names.code(np.ones(597, dtype=np.int64), np.arange(3, 600))
    codes = np.concatenate([true, false, more])[:600]
    ranking = NameRanking(codes, np.arange(600.0), "cosine", np.ones(600, dtype=bool))
    found, *_ = attack_names(names, [ranking], rng(), draws=20)
    assert (found.count, found.n, found.unit, found.control_kind) == (
        hits,
        600,
        "pairs",
        "negative",
    )
    assert (found.low, found.high) == pytest.approx((low, high), abs=2e-5)
    assert "Poisson" in found.method
