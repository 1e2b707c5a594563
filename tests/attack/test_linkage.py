"""Linkage: all on unprotected text, chance on a shuffled release, matchers by hand-made cases, bad
input.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scenes import channel_of, random_channel, seen

from clinveil.attacks import Assets, Context, Linkage, LinkageSides, Own, View
from clinveil.attacks.text.linkage import other_notes, paired
from clinveil.attacks.text.linkage.figures import Linked, combined, halves, standardised
from clinveil.attacks.text.linkage.matchers import (
    SLIP,
    Likelihood,
    bm25,
    in_order,
    tfidf,
)
from clinveil.channel import ChannelSettings
from clinveil.core import InputError
from clinveil.corpus import memory_corpus
from clinveil.vectors import VectorSettings

PEOPLE = 60


def notes(rng, n=PEOPLE, words=200, length=60):
    usual = 1 / np.arange(1, words + 1)
    drawn = rng.choice(words, (n, length), p=usual / usual.sum())
    return [" ".join(f"w{i}" for i in row[: length - int(rng.integers(10))]) for row in drawn]


def letters(text):
    """The words of a text in letters alone: digits would split them."""
    return " ".join("".join(chr(97 + int(c)) for c in word[1:]) + "x" for word in text.split())


def corpus(texts, ids=None, patients=None):
    ids = ids or [str(i) for i in range(len(texts))]
    return memory_corpus(list(zip(ids, patients or ids, texts, strict=True)))


def obfuscated(rng, texts, channel):
    rows = [np.array([channel.ids[word] for word in text.split()]) for text in texts]
    return [
        " ".join(channel.words[y] for y in seen(channel, row, 0, rng).outputs.tolist())
        for row in rows
    ]


@pytest.fixture(scope="module")
def world():
    """Source notes, a channel over their words, and what comes out of it."""
    rng = np.random.default_rng(5)
    texts = [letters(text) for text in notes(rng)]
    base = random_channel(200, 6, rng)
    channel = replace(base, words=[letters(word) for word in base.words])
    return texts, channel, obfuscated(rng, texts, channel)


def by_attacker(found, measure="attack.linkage", against="whole texts"):
    return {f.attack: f for f in found if f.measure == measure and against in f.labels}


def test_unprotected_text_is_found_by_all(world):
    texts, _, _ = world
    found = Linkage()(
        Context(released=corpus(texts), original=corpus(texts)), np.random.default_rng(1)
    )
    one = by_attacker(found)["without the vectors"]
    assert (one.value, one.count, one.n) == (1.0, PEOPLE, PEOPLE)
    assert one.chance == 1 / PEOPLE and one.control < 0.1 and one.numbers["median"] == 1
    assert by_attacker(found, "attack.linkage_singled")["without the vectors"].value > 0.9
    assert next(f for f in found if f.measure == "attack.linkage_unprotected").value > 0.9


def test_a_release_is_found_by_the_thief_of_the_channel_alone(world):
    texts, channel, released = world
    context = Context(released=corpus(released), original=corpus(texts), channel=channel)
    found = Linkage(each=True)(context, np.random.default_rng(1))
    whole = by_attacker(found)
    part = by_attacker(found, against="10 words in a row")
    assert whole["channel"].value == 1 and whole["with the channel"].value > 0.95
    assert whole["words"].value < 0.15 and whole["word pairs"].value < 0.15
    assert part["channel, words in order"].value > 0.9 > part["channel, all of its words"].value
    assert part["without the vectors"].value < 0.15 and part["with the channel"].value > 0.8


def test_vectors_of_ones_own_find_what_ones_own_channel_made(tmp_path):
    rng = np.random.default_rng(0)
    topics = [[f"{'abcdefghij'[t]}{'klmnopqrst'[i]}" for i in range(10)] for t in range(10)]
    texts = [
        " ".join(rng.choice(topics[t] + topics[(t + d) % 10], 80))
        for t, d in product(range(10), (1, 2, 3))
    ]
    sides = LinkageSides(texts, texts, np.arange(30), np.arange(30))
    settings = ChannelSettings(n=3, min_patients=1, allow_small=True)
    how = {"vectors": VectorSettings(dim=10, epochs=20), "channels": (settings,)}
    (channel,) = Own.of(sides, np.random.default_rng(1), tmp_path, **how).channels
    assert set(channel.words) == {word for topic in topics for word in topic}
    released = replace(sides, released=obfuscated(rng, texts, channel))
    own = Own.of(released, np.random.default_rng(2), tmp_path, **how)
    assert (
        Likelihood.of(released, own.channels[0]).mixture((0.9,)).argmax(axis=1) == np.arange(30)
    ).mean() > 0.15
    found = View("whole texts", released).findings(
        Assets(own=own), np.random.default_rng(0), each=True
    )
    assert by_attacker(found)["own vectors"].value > 0.15 and "own channel 1" in by_attacker(found)


def sides_of(released, known, **more):
    truth = np.arange(len(released))
    return LinkageSides(released, known, truth, truth, **more)


def test_tfidf_by_hand():
    scores = tfidf(sides_of(["a a b", "c"], ["a b", "c d"]))
    rare = np.log(5 / np.array([3, 3, 3, 2])) + 1
    one = np.array([1 + np.log(2), 1, 0, 0]) * rare
    other = np.array([1, 1, 0, 0]) * rare
    assert scores[0, 0] == pytest.approx(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
    assert scores[0, 1] == scores[1, 0] == 0
    pairs = tfidf(sides_of(["a b c", "b a"], ["a b", "c c"]), pairs=True)
    assert pairs[0, 0] > 0 == pairs[1, 0]


def test_bm25_by_hand():
    sides = sides_of(["b a", "c"], ["a a", "c d e"])
    rare = np.log(3 / 2) + 1
    weight = 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 2 / 2.5))
    scores = bm25(sides)
    assert scores[0, 0] == pytest.approx(rare * weight) and scores[0, 1] == 0
    asked = bm25(sides, known_as_query=True)
    assert (
        asked[0, 0] == pytest.approx(rare * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 1.5)))
        and asked[1, 0] == 0
    )


CHANNEL = replace(
    channel_of([[1, 2], [2, 3], [0], [0, 1]], [[0.5, 0.5], [0.25, 0.75], [1.0], [0.5, 0.5]]),
    words=[*"abcd"],
)


def brute_mixture(released, known, share, *, once):
    matrix = CHANNEL.matrix().toarray()
    ids = CHANNEL.ids
    counts = np.array([sum(note.split().count(word) for note in released) for word in "abcd"]) + 0.5
    usual = counts / counts.sum()
    table = np.zeros((len(released), len(known)))
    for (i, note), (j, text) in product(enumerate(released), enumerate(known)):
        inputs = [ids[word] for word in text.split() if word in ids]
        for word in sorted(set(note.split())) if once else note.split():
            y = ids[word]
            own = np.mean([matrix[x, y] for x in inputs])
            table[i, j] += np.log(1 - share + share * own / usual[y])
    return np.maximum(table, 0)


@pytest.mark.parametrize("once", [False, True])
def test_the_likelihood_of_a_channel_equals_brute_force(once):
    released = ["b c c a", "a a b", "d b"]
    known = ["a a b", "c d zz", "b"]
    made = Likelihood.of(sides_of(released, known), CHANNEL).mixture((0.3, 0.8), once=once)
    both = [brute_mixture(released, known, share, once=once) for share in (0.3, 0.8)]
    assert np.allclose(made, np.maximum(*both))


def test_a_fragment_in_order_equals_brute_force():
    released = ["b c a d b", "a a b", "d"]
    known = ["a b c", "c d", "zz a"]
    sides = sides_of(released, known)
    matrix = CHANNEL.matrix().toarray()
    ids = CHANNEL.ids
    ratio = Likelihood.of(sides, CHANNEL).ratio.toarray()
    assert (ratio > 0).tolist() == (matrix[:4] > 0).tolist()
    want = np.zeros((3, 3))
    for (i, note), (j, text) in product(enumerate(released), enumerate(known)):
        ys = [ids[word] for word in note.split()]
        xs = [ids.get(word) for word in text.split()]
        for start in range(-len(xs), len(ys)):
            fits = [
                (x, ys[start + k])
                for k, x in enumerate(xs)
                if x is not None and 0 <= start + k < len(ys)
            ]
            want[i, j] = max(want[i, j], sum(np.log1p(ratio[x, y] / SLIP) for x, y in fits))
    assert np.allclose(in_order(sides, CHANNEL), want)


def test_weights_are_learnt_on_other_people():
    rng = np.random.default_rng(3)
    truth = np.arange(200)
    people = np.arange(200)
    signal = rng.normal(size=(200, 200)) + 5 * np.eye(200)
    noise = [rng.normal(size=(200, 200)) for _ in range(3)]
    made = combined([*noise, signal], truth, people, rng)
    plain = sum(standardised(one) for one in [*noise, signal])
    hits = [(scores.argmax(axis=1) == truth).mean() for scores in (made, plain)]
    assert hits[0] > hits[1] + 0.1
    assert halves(np.repeat(np.arange(10), 3), rng).reshape(10, 3).std(axis=1).max() == 0
    only_noise = combined(noise, truth, people, rng)
    assert (only_noise.argmax(axis=1) == truth).mean() < 0.04


def test_singled_out_are_those_with_a_margin_that_is_right_elsewhere():
    n = 100
    scores = np.random.default_rng(0).normal(size=(n, n))
    scores[np.arange(n // 2), np.arange(n // 2)] += 30
    linked = Linked(scores, np.arange(n), np.arange(n))
    named = linked.confident(np.random.default_rng(1))
    assert named[: n // 2].all() and named[n // 2 :].mean() < 0.25


def test_other_notes_of_the_patient_are_known(world):
    texts, channel, released = world
    patients = [str(i // 3) for i in range(PEOPLE)]
    made = corpus(released, [f"r{i}" for i in range(PEOPLE)], patients)
    walk = {f"r{i}": str(i) for i in range(PEOPLE)}
    sides = other_notes(
        made, corpus(texts, None, patients), np.random.default_rng(0), crosswalk=walk, limit=50
    )
    assert len(sides.released) == len(sides.known) == 20
    for note, j in zip(sides.released, sides.truth, strict=True):
        i = released.index(note)
        assert texts[i] not in sides.known[j]
        assert all(texts[k] in sides.known[j] for k in range(i // 3 * 3, i // 3 * 3 + 3) if k != i)
    alone = other_notes(
        corpus(released), corpus(texts), np.random.default_rng(0), crosswalk=None, limit=50
    )
    assert alone is None
    context = Context(
        released=made, original=corpus(texts, None, patients), notes=walk, channel=channel
    )
    found = Linkage(fragment=0, own_vectors=False)(context, np.random.default_rng(0))
    assert {f.labels[0] for f in found} == {"whole texts", "the patient's other notes"}


def test_texts_are_paired_by_patient_and_cut_to_a_sample():
    released = memory_corpus(
        [("1", "p", "a b"), ("2", "q", "c d"), ("3", "r", "12"), ("4", "s", "e")]
    )
    known = memory_corpus(
        [("8", "p", "a"), ("9", "p", "b"), ("7", "q", "c"), ("6", "r", "x"), ("5", "t", "y")]
    )
    sides = paired(released, known, np.random.default_rng(0), match="patient", limit=10)
    assert [sides.known[j] for j in sides.truth] in (["a\nb", "c"], ["c", "a\nb"])
    assert sides.left_out == 2 and len(sides.known) == 4
    texts = [letters(text) for text in notes(np.random.default_rng(0), n=40)]
    few = paired(corpus(texts), corpus(texts), np.random.default_rng(0), limit=7)
    assert len(few.released) == len(few.known) == 7 and texts[0] not in repr(few)


def test_bad_input_is_one_clear_line():
    rng = np.random.default_rng(0)
    one = corpus(["a b", "c"])
    with pytest.raises(InputError, match="no released note has the id of a known text"):
        paired(one, corpus(["a", "b"], ["x", "y"]), rng, limit=10)
    with pytest.raises(InputError, match="requires two people, found 1"):
        paired(corpus(["a"]), one, rng, limit=10)
    with pytest.raises(InputError, match="no released note has the id of a known text"):
        paired(one, corpus(["", "12"]), rng, limit=10)
    with pytest.raises(InputError, match="column to match by does not exist"):
        paired(one, one, rng, match="weather", limit=10)
    with pytest.raises(InputError, match="not in the crosswalk"):
        paired(one, one, rng, crosswalk={"7": "7"}, limit=10)
    (finding,) = Linkage()(Context(released=corpus(["a"]), original=one, entered=one), rng)
    assert finding.value is None and "two people" in finding.why


def test_a_view_of_few_people_needs_no_weights():
    sides = sides_of(["a b", "c d", "e f"], ["a", "c", "e"])
    (first, *_) = View("whole texts", sides).findings(Assets(), np.random.default_rng(0))
    assert first.value == 1


def test_the_tenth_with_the_rarest_words_is_told_apart():
    """Of twenty people two have words of their own; the attacker finds these two and nobody
    else.
    """
    common = "seen today with mild pain in the chest"
    known = [
        f"{common} {'zebra' if i == 3 else 'quokka' if i == 7 else 'cough'}" for i in range(20)
    ]
    people = np.arange(20)
    sides = LinkageSides(known, known, people, people)
    assert np.flatnonzero(sides.rarest).tolist() == [3, 7]
    scores = np.where(sides.rarest[:, None], np.eye(20), -np.eye(20))
    found = Linked(scores, people, people, rarest=sides.rarest).findings(
        np.random.default_rng(0), top=3
    )
    values = {f.measure: (f.value, f.n) for f in found}
    assert values["attack.linkage_rarest"] == (1.0, 2) and values["attack.linkage"] == (0.1, 20)
