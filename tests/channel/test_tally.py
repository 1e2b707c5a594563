"""Tallies: what is counted, that it balances, and which notes are not written."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
from channel_cases import WORDS, batch_of, circle, texts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.channel import TokenTally, WordObfuscator, identity_channel
from clinveil.channel.words import BROKEN_TEXT, NULL_TEXT
from clinveil.core import Key, Kind, tokenize

KEY = Key.from_seed(1)
CHANNEL = circle()
MIXED = "Smith's pain: 12.5 mg — José, zebra\x00 in 2024!"


def tally_of(text: str | None, channel=CHANNEL, **how: str) -> TokenTally:
    return WordObfuscator(channel.under(**how), KEY)(batch_of(("n", "p", text))).tally


def test_every_token_by_hand():
    # smith s pain mg josé zebra in; 12 5 2024; ' : . — , !; one control character
    expected = TokenTally(
        notes=1,
        words=7,
        known=4,
        unknown=3,
        numbers=3,
        punct=6,
        other=1,
        replaced=7,
        released=7,
        masked=0,
        copied=0,
    )
    assert tally_of(MIXED) == expected
    assert tally_of(MIXED, layout="keep", numbers="mask") == replace(
        expected, masked=3, copied=5, released=10
    )


def test_dropped_unknown_words():
    tally = tally_of(MIXED, circle(pool=0))
    assert (tally.unknown, tally.dropped, tally.replaced, tally.released) == (3, 3, 4, 4)
    assert tally.balanced


def test_identity_replaces_by_itself_and_says_so():
    channel = identity_channel(WORDS)
    result = WordObfuscator(channel, KEY)(batch_of(("n", "p", "Smith has pain in Chest zebra")))
    assert texts_of(result.batch) == ["smith has pain in chest"]
    assert (result.tally.self_replaced, result.tally.kept_words, result.tally.dropped) == (5, 0, 1)


def test_kept_words_are_counted_apart():
    channel = CHANNEL.keeping(["pain", "josé", "not in the channel"])
    result = WordObfuscator(channel, KEY)(
        batch_of(("n", "p", "Pain, JOSE\u0301 and pain of the chest"))
    )
    words = texts_of(result.batch)[0].split()
    assert (words[0], words[1], words[3]) == ("pain", "josé", "pain")
    assert (result.tally.kept_words, result.tally.replaced, result.tally.self_replaced) == (3, 4, 0)
    assert result.tally.balanced


@given(st.text(max_size=80))
@settings(deadline=None, max_examples=200)
def test_counts_agree_with_the_tokenizer(text):
    kinds = Counter(t.kind for t in tokenize(text))
    tally = tally_of(text)
    assert (tally.words, tally.numbers) == (kinds[Kind.WORD], kinds[Kind.NUMBER])
    assert (tally.punct, tally.other) == (kinds[Kind.PUNCT], kinds[Kind.OTHER])
    assert tally.balanced


def test_null_text_is_not_written_and_counted():
    result = WordObfuscator(CHANNEL, KEY)(
        batch_of(("n1", "p", None), ("n2", "p", "pain"), ("n3", "p", None))
    )
    assert result.batch.column("note_id").to_pylist() == ["n2"]
    assert (result.tally.notes, result.tally.read, result.tally.skipped) == (
        1,
        3,
        Counter({NULL_TEXT: 2}),
    )


def test_empty_text_is_written_and_counted():
    result = WordObfuscator(CHANNEL, KEY)(batch_of(("n1", "p", ""), ("n2", "p", "")))
    assert (texts_of(result.batch), result.tally) == (["", ""], TokenTally(notes=2))


def test_broken_text_is_not_written_and_counted():
    raw = [b"pain", b"pa\xffin", b"\xed\xa0\x80", b"Jos\xc3", "José".encode()]
    lengths = np.cumsum([0, *map(len, raw)])
    buffers = [None, pa.py_buffer(lengths.astype(np.int64)), pa.py_buffer(b"".join(raw))]
    texts = pa.Array.from_buffers(pa.large_string(), len(raw), buffers)
    batch = batch_of(*[(f"n{i}", "p", "") for i in range(5)]).set_column(2, "text", texts)
    result = WordObfuscator(CHANNEL, KEY)(batch)
    assert result.batch.column("note_id").to_pylist() == ["n0", "n4"]
    assert result.tally.skipped == Counter({BROKEN_TEXT: 3})
    assert result.tally.words == 2


def test_an_unbalanced_tally_is_seen():
    good = tally_of(MIXED, layout="keep", numbers="mask")
    assert good.balanced
    for name in ("words", "known", "replaced", "dropped", "kept_words", "masked", "released"):
        assert not replace(good, **{name: getattr(good, name) + 1}).balanced
