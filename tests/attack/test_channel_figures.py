"""The exact figures of a channel, by stratum and for two attackers: by hand, by enumeration, and from the command."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from clinveil.attacks.attack import Context
from clinveil.attacks.channel._strata import unknown_strata, word_strata
from clinveil.attacks.channel.channel_figures import OTHER, OWN, ChannelFigures, external_frequencies
from clinveil.channel.channel import Channel
from clinveil.channel.files import save_channel
from clinveil.channel.identity import identity_channel
from clinveil.cli.main import app
from clinveil.core.errors import InputError
from clinveil.vectors.neighbours import save_neighbours
from clinveil.vectors.table import Neighbours

WORDS = ["the", "fever", "cough", "robinson", "pain"]


def channel_of(rows, words=WORDS):
    """Row i has the outputs rows[i], as likely; the last row is of unknown words."""
    flat = np.array([y for row in rows for y in row], dtype=np.int32)
    chances = np.concatenate([np.full(len(row), 1 / max(1, len(row))) for row in rows])
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return Channel(words, indptr, flat, chances, np.ones(len(words), dtype=bool))


UNTOLD = ", not told the kind"
CIRCLE = [[1, 2], [2, 3], [3, 4], [4, 0], [0, 1], []]


def counted(counts):
    return SimpleNamespace(words=list(counts), counts=np.array(list(counts.values())))


def figures(channel, counts, prior=None, near=None, **how):
    said = []
    context = Context(
        channel=channel,
        counts=counted(counts),
        prior=None if prior is None else counted(prior),
        near=near,
        say=said.append,
    )
    found = ChannelFigures(**how)(context, np.random.default_rng(0))
    keys = ("label", "attacker", "setting")
    return {(f.measure[15:], *(str(f.detail[k]) for k in keys if k in f.detail)): f for f in found}, said


def test_by_hand():
    counts = {"the": 40, "fever": 30, "cough": 20, "robinson": 6, "pain": 4}
    found, _ = figures(channel_of(CIRCLE), counts)
    # Outputs 0 to 4 can be robinson 3 or pain 2, the 20 or pain 2, the 20 or fever 15, fever 15 or cough 10, cough 10.
    best = found["posterior", "all words", OWN]
    assert best.value == pytest.approx((3 + 20 + 20 + 15 + 10) / 100) and best.chance == 0.4
    assert best.n == 100
    # Rare are robinson and pain: told so, all of robinson's but half of pain's at output 0, and pain's at output 1.
    rare = found["posterior", "rare words", OWN]
    assert rare.value == pytest.approx((3 + 3 + 2) / 10)
    assert found["posterior", "rare words", f"{OWN}{UNTOLD}"].value == pytest.approx(3 / 10)
    assert found["posterior", "names", OWN].value == 1.0 and found["posterior", "names", OWN].n == 6
    assert found["posterior", "content words", OWN].value is None
    assert found["leakage", "all words"].value == pytest.approx(math.log2(0.68 / 0.4))
    assert found["leakage", "capacity: the most, for any frequencies"].value == pytest.approx(math.log2(2.5))
    assert found["unchanged", "all words"].value == 0 and found["spread", "all words"].value == 2
    assert found["single", "all words"].value == 0
    assert found["inputs", "median of all outputs"].value == 2
    assert found["distance", "a word and its nearest"].value is None


def test_an_attacker_with_other_counts_guesses_by_them_and_is_scored_by_the_truth():
    counts = {"the": 40, "fever": 30, "cough": 20, "robinson": 6, "pain": 4, "zyx": 5, "qux": 2}
    channel = channel_of([*CIRCLE[:-1], [0]])
    found, said = figures(channel, counts, {"pain": 50, "the": 10, "fever": 40, "cough": 1, "qux": 30, "zyx": 1})
    # Output 0: pain 25 or qux 30, so qux 2 is named; 1: pain 2; 2: fever 15; 3: fever 15; 4: cough 10.
    theirs = found["posterior", "all words", OTHER]
    assert theirs.value == pytest.approx((2 + 2 + 15 + 15 + 10) / 107) and theirs.chance == pytest.approx(4 / 107)
    assert found["posterior", "rare words", f"{OTHER}{UNTOLD}"].value == pytest.approx((2 + 2) / 17)
    assert found["posterior", "all words", OWN].value >= theirs.value
    assert theirs.detail["known"] == pytest.approx(101 / 132) and said == [
        "clinveil: 76.5% of the words of the other notes are words of the channel"
    ]


def test_notes_of_another_tokenization_are_refused():
    with pytest.raises(InputError, match=r"4\.0% of the words of the other notes"):
        external_frequencies(channel_of(CIRCLE), counted({"PAIN": 96, "pain": 4}), [])
    guess, share = external_frequencies(channel_of(CIRCLE), counted({"xy": 90, "pain": 10}), ["xy", "z"])
    assert share == 0.1 and guess.tolist() == [0.1, 0.1, 0.1, 0.1, 10, 90, 0.1]


def test_controls():
    counts = {"the": 40, "fever": 30, "cough": 20, "robinson": 6, "pain": 4}
    identity, _ = figures(identity_channel(WORDS), counts, counts)
    for attacker in (OWN, OTHER):
        assert identity["posterior", "all words", attacker].value == pytest.approx(1)
    assert identity["single", "names"].value == identity["single_words", "names"].value == 1
    assert identity["candidates", "all words"].value == pytest.approx(1)
    assert identity["information", "all words"].detail["share_of_bits"] == pytest.approx(1)
    assert identity["unchanged", "all words"].value == identity["spread", "all words"].value == 1
    assert identity["distance", "two words at random"].value == 1
    assert identity["epsilon", "two words at random"].value is None
    alike, _ = figures(channel_of([[0, 1]] * 6), counts, near=near_of([1, 2, 3, 4, 0]))
    best = alike["posterior", "all words", OWN]
    assert best.value == best.chance == best.control == 0.4
    assert alike["leakage", "capacity: the most, for any frequencies"].value == pytest.approx(0)
    assert alike["information", "all words"].value == pytest.approx(0)
    for label in ("a word and its nearest", "two words at random"):
        assert alike["epsilon", label].value == alike["distance", label].value == 0
        assert alike["delta", label, "epsilon 1, mean"].value == 0


def near_of(nearest):
    ids = np.array(nearest, dtype=np.int32)[:, None]
    return Neighbours(ids, np.ones(ids.shape, dtype=np.float32), np.ones(len(ids), dtype=bool))


def test_near_words_of_a_channel_of_neighbours_have_no_epsilon():
    counts = dict.fromkeys(WORDS, 5)
    found, _ = figures(channel_of(CIRCLE), counts, near=near_of([1, 2, 3, 4, 0]), pairs=500)
    distance = found["distance", "a word and its nearest"]
    assert distance.value == 0.5 and found["disjoint", "a word and its nearest"].value == 0
    assert found["disjoint", "two words at random"].value == pytest.approx(0.5, abs=0.1)
    assert found["delta", "a word and its nearest", "epsilon 8, mean"].value == 0.5
    assert found["delta", "two words at random", "epsilon 8, worst pair"].value == 1
    epsilon = found["epsilon", "a word and its nearest"]
    assert epsilon.value is None and "infinite" in epsilon.detail["why"] and epsilon.detail["infinite"] == 1
    random = found["distance", "two words at random"]
    assert random.low <= 0.75 <= random.high and random.n == 500  # of four others two share an output
    with pytest.raises(InputError, match="neighbour table is of 3 words"):
        figures(channel_of(CIRCLE), counts, near=near_of([1, 2, 0]))


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_best_guesses_by_enumeration(data):
    """Every word type on its own, known and unknown; two attackers; told the stratum, and not."""
    n = len(WORDS)
    rows = [data.draw(st.lists(st.integers(0, n - 1), max_size=3, unique=True)) for _ in range(n + 1)]
    rows[0] = rows[0] or [0]
    types = [*WORDS, "martinez", "zyx"]
    source = {w: data.draw(st.integers(1, 40), label=w) for w in types}
    other = {w: c + data.draw(st.floats(0.01, 0.9)) for w, c in source.items()}
    other = {w: data.draw(st.sampled_from([c, 50 - c])) for w, c in other.items()}
    channel = channel_of(rows).keeping(data.draw(st.sets(st.sampled_from(WORDS), max_size=1)))
    table = channel.matrix().toarray()[[*range(n), n, n]]
    found, _ = figures(channel, source, other)
    outside = {w: source[w] for w in types[n:]}
    masks, more = word_strata(channel, np.array([source[w] for w in WORDS])), unknown_strata(outside)
    true = np.array([source[w] for w in types], dtype=float) * table.any(axis=1)
    for attacker, guess in ((OWN, true), (OTHER, np.array([other[w] for w in types]))):
        for name, label in (("all", "all words"), ("rare", "rare words"), ("names", "names")):
            mine = np.append(masks[name][:-1], more[name])
            finding = found["posterior", label, attacker]
            if not true[mine].sum():
                assert finding.value is None
                continue
            untold = found["posterior", label, attacker if name == "all" else f"{attacker}{UNTOLD}"]
            for told, value in ((True, finding.value), (False, untold.value)):
                weight = ((guess * mine if told else guess) * table.T).T
                named = weight.argmax(axis=0)
                tied = [(np.isclose(w, w.max()).sum() > 1) for w in weight.T if w.any()]
                if any(tied):
                    continue
                wins = [true[x] * table[x, y] * mine[x] for y, x in enumerate(named) if weight[:, y].any()]
                assert value == pytest.approx(sum(wins) / true[mine].sum())


def test_the_command(tmp_path):
    (tmp_path / "notes.csv").write_text("id,text\n1,the fever the cough\n2,the robinson pain\n")
    (tmp_path / "others.csv").write_text("id,text\n1,the fever\n2,the pain the word\n")
    (tmp_path / "foreign.csv").write_text("id,text\n1,das Fieber\n")
    save_channel(channel_of(CIRCLE), tmp_path / "channel")
    save_neighbours(near_of([1, 2, 3, 4, 0]), tmp_path / "neighbours")
    base = ["attack", "channel", str(tmp_path / "channel"), "--notes", str(tmp_path / "notes.csv"), "--seed", "1"]
    given_all = ["--prior", str(tmp_path / "others.csv"), "--neighbours", str(tmp_path / "neighbours"), "--json", "-"]
    run = CliRunner().invoke(app, [*base, *given_all])
    assert run.exit_code == 0, run.output
    measures = {f["measure"] for f in json.loads(run.stdout)["findings"]}
    assert measures == set(ChannelFigures.words)
    assert "epsilon is infinite" in CliRunner().invoke(app, base).stdout
    refused = CliRunner().invoke(app, [*base, "--prior", str(tmp_path / "foreign.csv")])
    assert isinstance(refused.exception, InputError) and "0.0% of the words" in str(refused.exception)


def test_a_channel_whose_row_does_not_sum_to_1_is_refused_with_the_row(tmp_path):
    save_channel(channel_of(CIRCLE), tmp_path / "channel")
    place = tmp_path / "channel" / "probabilities.npy"
    chances = np.load(place)
    chances[5] = 0.25
    np.save(place, chances)
    notes = tmp_path / "notes.csv"
    notes.write_text("id,text\n1,the fever\n")
    run = CliRunner().invoke(app, ["attack", "channel", str(tmp_path / "channel"), "--notes", str(notes)])
    assert isinstance(run.exception, InputError) and "row 2 sums to 0.75" in str(run.exception)
