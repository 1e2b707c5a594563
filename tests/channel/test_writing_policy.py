"""Policies: scopes of draws, order, length; the token loop equals the slow reference, and each does
what it says.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from channel_cases import WORDS, batch_of, circle, texts_of
from channel_reference import release_reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from test_obfuscator import CORPUS, TEXTS

from clinveil.channel import kernel
from clinveil.channel.apply import PURPOSES, Obfuscator
from clinveil.channel.build import scoped
from clinveil.channel.channel import Channel, identity_channel
from clinveil.channel.policy import SCOPES
from clinveil.core.errors import InputError
from clinveil.core.keys import Key
from clinveil.core.tokens import words
from clinveil.scale import threads

KEY = Key.from_seed(5)
COUNTS = np.arange(len(WORDS)) * 3
RARE = scoped(circle().under(scope="rare", rare_below=20), COUNTS)
CHANNELS = [
    circle().under(shuffle="note"),
    circle(pool=0).under(shuffle="note", layout="keep"),
    circle().under(length=0.9, scope="note"),
    RARE,
    RARE.under(shuffle="note", length=0.6, layout="keep", numbers="mask"),
    circle(pool=0).under(length=0.5, shuffle="note", numbers="mask"),
    circle().under(background=0.5, scope="patient", length=0.5),
    circle().keeping(["fever"]).dropping(["cough"]).under(background=0.9, layout="keep"),
]
OBFUSCATORS = [Obfuscator(channel, KEY, align=True) for channel in CHANNELS]
UNLIKELY = 1e-4
SENTENCES = st.lists(
    st.sampled_from([*WORDS[:9], "12", ".", ". ", "!\n", "? ", "\u2028", " ", ", "]), max_size=30
)


def released(channel: Channel, *notes: tuple[str, str, str | None], key: Key = KEY) -> list[str]:
    return texts_of(Obfuscator(channel, key)(batch_of(*notes)).batch)


def expected(
    channel: Channel, *notes: tuple[str, str, str]
) -> list[tuple[str, list[tuple[int, int]]]]:
    return [release_reference(text, note, channel, KEY, patient) for note, patient, text in notes]


def with_places(
    obfuscator: Obfuscator, *batches: pa.RecordBatch, workers: int = 1
) -> list[tuple[str, list]]:
    found = []
    for result in threads(workers)(obfuscator, batches):
        rows = result.alignment.to_pydict()
        places = [
            list(zip(*pair, strict=True)) for pair in zip(rows["start"], rows["end"], strict=True)
        ]
        found += zip(texts_of(result.batch), places, strict=True)
    return found


@given(
    st.lists(TEXTS | SENTENCES.map("".join), min_size=1, max_size=4),
    st.sampled_from(range(len(CHANNELS))),
)
@settings(deadline=None, max_examples=200)
def test_equals_the_slow_reference(texts, which):
    notes = [(f"note {i}", f"patient {i // 2}", text) for i, text in enumerate(texts)]
    assert with_places(OBFUSCATORS[which], batch_of(*notes)) == expected(CHANNELS[which], *notes)
    assert OBFUSCATORS[which](batch_of(*notes)).tally.balanced


@pytest.mark.parametrize("which", range(len(CHANNELS)))
def test_batches_workers_and_order_of_notes_change_nothing(which):
    obfuscator = OBFUSCATORS[which]
    right = expected(CHANNELS[which], *CORPUS)
    for rows, workers in ((7, 3), (60, 1)):
        batches = [batch_of(*CORPUS[i : i + rows]) for i in range(0, 60, rows)]
        assert with_places(obfuscator, *batches, workers=workers) == right
    assert with_places(obfuscator, batch_of(*CORPUS[::-1])) == right[::-1]


def test_the_loop_knows_the_scopes_and_keys():
    assert SCOPES == PURPOSES[: len(SCOPES)] == ("occurrence", "note", "patient", "corpus")
    assert [kernel.OCCURRENCE, kernel.NOTE, kernel.PATIENT, kernel.CORPUS] == [0, 1, 2, 3]
    assert [PURPOSES[at] for at in (kernel.ORDER, kernel.LENGTH)] == ["order", "length"]
    assert len(PURPOSES) == kernel.KEYS


def numbered(n: int) -> list[str]:
    """So many words that differ: a, b, …, aa, …"""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [("" if i < 26 else letters[i // 26 - 1]) + letters[i % 26] for i in range(n)]


NUMBERED = numbered(200)
SAME = identity_channel(NUMBERED)


def test_a_shuffle_is_a_permutation_of_the_words_of_a_note():
    (text,) = released(SAME.under(shuffle="note"), ("n", "p", " ".join(NUMBERED)))
    assert text.split() != NUMBERED and sorted(text.split()) == sorted(NUMBERED)


def test_layout_and_masks_stay_where_they_are():
    source = "(a, b) 12 c-d:\n e;  f"
    how = {"layout": "keep", "numbers": "mask", "shuffle": "note"}
    texts = [released(SAME.under(**how), (f"n{i}", "p", source))[0] for i in range(30)]
    assert {"".join("_" if c.isalpha() else c for c in text) for text in texts} == {
        "(_, _) ## _-_:\n_; _"
    }
    assert len(set(texts)) > 20


def test_all_orders_are_as_likely():
    notes = [(f"n{i}", "p", "a b c") for i in range(12_000)]
    seen = Counter(released(SAME.under(shuffle="note"), *notes))
    assert seen.keys() == {" ".join(order) for order in permutations("abc")}
    assert chisquare(list(seen.values())).pvalue > UNLIKELY


@pytest.mark.parametrize("how", [{"shuffle": "note"}, {"length": 0.9}])
def test_another_key_and_another_note_give_another_order(how):
    text = ". ".join(NUMBERED)
    one, other = (
        released(SAME.under(**how), ("n", "p", text), ("m", "p", text), key=Key.from_seed(s))
        for s in (1, 2)
    )
    assert len({*one, *other}) == 4


@given(SENTENCES.map("".join), st.sampled_from(range(len(CHANNELS))))
@settings(deadline=None, max_examples=150)
def test_places_name_the_source_of_each_released_word(text, which):
    """On the identity every released word is the word that stands at its place."""
    channel = identity_channel(WORDS).under(
        **vars(CHANNELS[which].policy) | {"scope": "note", "background": 0.0}
    )
    ((out, places),) = with_places(Obfuscator(channel, KEY, align=True), batch_of(("n", "p", text)))
    assert words(out) == [text[start:end] for start, end in places]


def test_each_note_has_its_own_length():
    notes = [(f"n{i}", "p", " ".join(NUMBERED * 2)) for i in range(400)]
    result = Obfuscator(SAME.under(length=0.3), KEY)(batch_of(*notes))
    shares = np.array([len(text.split()) / 400 for text in texts_of(result.batch)])
    assert 0.6 < shares.min() < 0.75 and 1.25 < shares.max() < 1.4
    assert abs(shares.mean() - 1) < 0.03
    assert chisquare(np.histogram(shares, np.linspace(0.75, 1.25, 6))[0]).pvalue > UNLIKELY
    tally = result.tally
    assert tally.balanced and tally.dropped == tally.subsampled > 0
    assert tally.released == tally.words - tally.subsampled + tally.doubled


def test_a_doubled_word_is_drawn_twice_unless_the_memo_repeats_it():
    same = {}
    for scope in ("occurrence", "note"):
        channel = circle(low=5, high=5).under(length=0.9, scope=scope)
        pairs = [
            (out[i], out[i + 1])
            for text, places in with_places(
                Obfuscator(channel, KEY, align=True),
                batch_of(*((f"n{i}", "p", "pain " * 20) for i in range(300))),
            )
            for out in [text.split()]
            for i in range(len(out) - 1)
            if places[i] == places[i + 1]
        ]
        same[scope] = np.mean([a == b for a, b in pairs])
        assert len(pairs) > 500
    assert same["note"] == 1
    assert 0.15 < same["occurrence"] < 0.25


def test_the_corpus_has_one_replacement_a_word():
    notes = [(f"n{i}", f"p{i}", "pain José unseen pain") for i in range(50)]
    assert len(set(released(circle().under(scope="corpus"), *notes))) == 1


def test_rare_words_repeat_within_a_patient_and_others_never():
    notes = [(f"n{i}", f"p{i % 3}", "the smith unseen " * 20) for i in range(9)]
    channel = scoped(
        circle().under(scope="rare", rare_below=20), np.where(np.array(WORDS) == "smith", 19, 20)
    )
    by_patient: dict[int, list[list[str]]] = {}
    for i, text in enumerate(released(channel, *notes)):
        by_patient.setdefault(i % 3, []).append(text.split())
    for texts in by_patient.values():
        columns = [{word for text in texts for word in text[at::3]} for at in range(3)]
        assert len(columns[0]) == 3 + 2 and [len(columns[1]), len(columns[2])] == [1, 1]


def test_rare_needs_the_scopes_of_rows():
    with pytest.raises(ValueError, match="needs a scope per row"):
        Obfuscator(circle().under(scope="rare"), KEY)
    with pytest.raises(ValueError, match="scopes"):
        Channel(
            ["a"],
            np.array([0, 1, 1]),
            np.zeros(1, np.int32),
            np.ones(1),
            np.ones(1, bool),
            scopes=np.zeros(1, "u1"),
        )


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_background_draws_follow_the_mixture_and_never_write_the_word_itself(share):
    channel = circle(low=5, high=5).under(background=share)
    text = " ".join(["patient"] * 20_000)
    outputs = Counter(words(released(channel, ("n", "p", text))[0]))
    expected = np.asarray(
        channel.mixed(np.array([channel.ids["patient"]]))[channel.ids["patient"]].todense()
    ).ravel()
    itself = channel.ids["patient"]
    own = np.asarray(channel.matrix()[itself].todense()).ravel()
    expected = np.where(np.arange(expected.size) == itself, 0, expected + own * expected[itself])
    seen = np.array([outputs[word] for word in channel.words])
    assert seen[itself] == 0 and seen[expected == 0].sum() == 0
    assert chisquare(seen[expected > 0], expected[expected > 0] * 20_000).pvalue > UNLIKELY


def test_background_draws_need_a_pool():
    with pytest.raises(InputError, match="pool of common words"):
        Obfuscator(circle(pool=0).under(background=0.5), KEY)


def test_exact_figures_hold_with_background_draws():
    channel = circle().under(background=0.4)
    prior = np.arange(len(WORDS) + 1, 1, -1, dtype=float)
    full = np.vstack([channel.mixed(np.arange(len(WORDS) + 1)).toarray()])
    mass = np.append(prior[: len(WORDS)], 0.0)
    joint = mass[:, None] * full
    assert np.allclose(full.sum(axis=1), 1)
    assert np.isclose(channel.posterior(prior[: len(WORDS)]).vulnerability, joint.max(axis=0).sum())
    assert np.allclose(channel.outputs(mass), joint.sum(axis=0))
