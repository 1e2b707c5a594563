"""The span of the source word of every released word."""

from __future__ import annotations

from channel_cases import WORDS, batch_of, circle, texts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.channel import Channel, WordObfuscator
from clinveil.core import Key, Kind, lookup_form, tokenize, words

KEY = Key.from_seed(1)


def released(text: str, channel: Channel) -> list[str]:
    return words(texts_of(WordObfuscator(channel, KEY)(batch_of(("n", "p", text))).batch)[0])


def test_spans_by_hand():
    text = "Jose\u0301 has 😀 sm\u200bith's 12 q4h"
    spans = circle().released_spans(text)
    assert [text[a:b] for a, b in spans] == ["Jose\u0301", "has", "sm\u200bith", "s", "q", "h"]


def test_dropped_words_have_no_span():
    text = "pain zebra fever, José zebra"
    channel = circle(pool=0).dropping(["fever"])
    assert [text[a:b] for a, b in channel.released_spans(text)] == ["pain", "José"]
    assert len(released(text, channel)) == 2


@given(st.text(max_size=80), st.sampled_from(["plain", "keep"]), st.sampled_from([0, 6]))
@settings(deadline=None, max_examples=200)
def test_there_is_one_span_per_released_word(text, layout, pool):
    channel = circle(pool=pool).under(layout=layout)
    spans = channel.released_spans(text)
    assert len(released(text, channel)) == len(spans)
    if pool:
        assert spans == [(t.start, t.end) for t in tokenize(text) if t.kind == Kind.WORD]


def test_spans_join_source_and_release_word_by_word():
    channel = circle(low=1, high=1).under(layout="keep")  # each word becomes the next
    text = "The patient, José: has (pain) in CHEST."
    for (start, end), word in zip(
        channel.released_spans(text), released(text, channel), strict=True
    ):
        assert word == WORDS[WORDS.index(lookup_form(text[start:end])) + 1]
