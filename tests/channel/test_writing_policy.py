"""Policies: layout, masks, background draws; the token loop equals the slow reference."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from channel_cases import WORDS, batch_of, circle, texts_of
from channel_reference import obfuscate_text_reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from test_obfuscator import CORPUS, TEXTS

from clinveil.channel import Channel, WordObfuscator, identity_channel
from clinveil.core import InputError, Key, words
from clinveil.scale import threads

KEY = Key.from_seed(5)
CHANNELS = [
    circle(),
    circle(pool=0).under(layout="keep"),
    circle(pool=0).under(layout="sentences", numbers="mask"),
    circle().under(layout="keep", numbers="mask"),
    circle().under(numbers="mask"),
    circle().under(layout="sentences"),
    circle().under(background=0.5),
    circle().keeping(["fever"]).dropping(["cough"]).under(background=0.9, layout="keep"),
]
OBFUSCATORS = [WordObfuscator(channel, KEY) for channel in CHANNELS]
UNLIKELY = 1e-4
SENTENCES = st.lists(
    st.sampled_from([*WORDS[:9], "12", ".", ". ", "!\n", "? ", "\u2028", " ", ", "]), max_size=30
)


def released(channel: Channel, *notes: tuple[str, str, str | None], key: Key = KEY) -> list[str]:
    return texts_of(WordObfuscator(channel, key)(batch_of(*notes)).batch)


def expected(channel: Channel, *notes: tuple[str, str, str]) -> list[str]:
    return [obfuscate_text_reference(text, note, channel, KEY) for note, _, text in notes]


def drawn(obfuscator: WordObfuscator, *batches: pa.RecordBatch, workers: int = 1) -> list[str]:
    results = threads(workers)(obfuscator, batches)
    return [text for result in results for text in texts_of(result.batch)]


@given(
    st.lists(TEXTS | SENTENCES.map("".join), min_size=1, max_size=4),
    st.sampled_from(range(len(CHANNELS))),
)
@settings(deadline=None, max_examples=400)
def test_equals_the_slow_reference(texts, which):
    notes = [(f"note {i}", f"patient {i // 2}", text) for i, text in enumerate(texts)]
    assert drawn(OBFUSCATORS[which], batch_of(*notes)) == expected(CHANNELS[which], *notes)
    assert OBFUSCATORS[which](batch_of(*notes)).tally.balanced


@pytest.mark.parametrize("which", range(len(CHANNELS)))
def test_batches_workers_and_order_of_notes_change_nothing(which):
    obfuscator = OBFUSCATORS[which]
    right = expected(CHANNELS[which], *CORPUS)
    for rows, workers in ((7, 3), (60, 1)):
        batches = [batch_of(*CORPUS[i : i + rows]) for i in range(0, 60, rows)]
        assert drawn(obfuscator, *batches, workers=workers) == right
    assert drawn(obfuscator, batch_of(*CORPUS[::-1])) == right[::-1]


@given(SENTENCES.map("".join), st.sampled_from(range(len(CHANNELS))))
@settings(deadline=None, max_examples=150)
def test_released_spans_are_those_of_the_released_words(text, which):
    """On the identity every released word is the word at its span."""
    policy = CHANNELS[which].policy
    channel = identity_channel(WORDS[:9]).under(layout=policy.layout, numbers=policy.numbers)
    (out,) = drawn(WordObfuscator(channel, KEY), batch_of(("n", "p", text)))
    assert words(out) == [text[start:end] for start, end in channel.released_spans(text)]


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
        WordObfuscator(circle(pool=0).under(background=0.5), KEY)


def test_exact_figures_hold_with_background_draws():
    channel = circle().under(background=0.4)
    prior = np.arange(len(WORDS) + 1, 1, -1, dtype=float)
    full = np.vstack([channel.mixed(np.arange(len(WORDS) + 1)).toarray()])
    mass = np.append(prior[: len(WORDS)], 0.0)
    joint = mass[:, None] * full
    assert np.allclose(full.sum(axis=1), 1)
    assert np.isclose(channel.posterior(prior[: len(WORDS)]).vulnerability, joint.max(axis=0).sum())
    assert np.allclose(channel.outputs(mass), joint.sum(axis=0))
