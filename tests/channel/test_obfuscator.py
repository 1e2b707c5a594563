"""The hot loop: equal to the slow reference, the same for any batches and workers, and nothing gets
past it.
"""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from channel_cases import (
    WORDS,
    all_others,
    batch_of,
    circle,
    texts_of,
)
from channel_reference import obfuscate_text_reference
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.channel import NeighbourRange, WordObfuscator, neighbour_channel
from clinveil.core import InputError, Key, lookup_form, words

KEY = Key.from_seed(11)
CHANNEL = circle()
WAYS = [
    {"layout": layout, "numbers": numbers}
    for layout in ("plain", "sentences", "keep")
    for numbers in ("drop", "mask")
]
OBFUSCATORS = [WordObfuscator(CHANNEL.under(**way), KEY) for way in WAYS]

# Pieces that meet one another at every kind of border.
PIECES = st.sampled_from(
    [
        *WORDS, "José", "JOSE\u0301", "jo\u200bse\u0301", "Zoë", "ИВАН", "Müller", "STRASSE",
        "Straße", "ﬁever", "Ⅷ", "smith's", "q4h", "x\u00ad", "\u0301", "\u200d", "\ufeff", "१२",
        "12.5", "3", "½", "😀", "👩\u200d⚕️", "한국어", "ʼ", "'", "-", "–", "…", "(", "!", " ", "  ",
            "\n", "\r\n", "\t", "\x85", "\u2028", "\xa0", "\x00", "\x1c",
        ". ", "? ", "\n\n",
        "\ue000", "İ", "ǰ", "ß", "Σς", "unseenword", "ñandú", "\U0001d400", "#", "_", "a" * 20,
        "b" * 70,
    ]
)  # fmt: skip
TEXTS = st.one_of(st.lists(PIECES, max_size=25).map("".join), st.text(max_size=60))


def reference(note: tuple[str, str, str], way: dict[str, str]) -> str:
    return obfuscate_text_reference(note[2], note[0], CHANNEL.under(**way), KEY)


@given(TEXTS)
@settings(deadline=None, max_examples=120)
def test_what_comes_out_are_words_of_the_channel_and_masks(text):
    for way, obfuscator in zip(WAYS, OBFUSCATORS, strict=True):
        (released,) = texts_of(obfuscator(batch_of(("n", "p", text))).batch)
        assert released == released.strip()
        assert set(words(released)) <= set(WORDS)
        if way["layout"] == "plain":
            assert all(
                piece in WORDS or set(piece) == {"#"} for piece in released.split(" ") if released
            )


CORPUS = [
    (
        f"note {i}",
        f"patient {i % 7}",
        " ".join(np.random.default_rng(i).choice([*WORDS, "José", "unseen", "12"], i)),
    )
    for i in range(60)
]


def test_another_key_gives_another_output():
    one, other = (
        WordObfuscator(CHANNEL, Key.from_seed(s))(batch_of(*CORPUS)).batch for s in (1, 2)
    )
    same = [
        a == b for a, b in zip(texts_of(one), texts_of(other), strict=True) if len(a.split()) > 5
    ]
    assert not any(same)


def test_composed_and_decomposed_names_are_one_word():
    nfc, nfd = (unicodedata.normalize(form, "José García-Ñandú") for form in ("NFC", "NFD"))
    hidden = "Jo\u200bse\u0301 GARCI\u00ad\u0301A-N\u0303andu\u0301"
    notes = [(f"n{i}", "p", text) for i, text in enumerate([nfc, nfd, hidden])]
    released = texts_of(
        WordObfuscator(circle(low=1, high=1, pool=1).under(layout="keep"), KEY)(
            batch_of(*notes)
        ).batch
    )
    assert len(set(released)) == 1


@pytest.mark.parametrize(
    "secret",
    [
        "José",
        "Jose\u0301",
        "Zoë",
        "Иван",
        "王芳",
        "한국어",
        "Ξένος",
        "ﬁnch",
        "ＳＭＩＴＨ",
        "sm\u200bith",
        "𝐬𝐦𝐢𝐭𝐡",
        "unseen",
    ],
)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_no_word_ever_passes(secret, way):
    obfuscator = WordObfuscator(CHANNEL.under(**way), KEY)
    notes = [(f"n{i}", f"p{i}", f"({secret}) {secret}, {secret}{i}") for i in range(200)]
    result = obfuscator(batch_of(*notes))
    for text in texts_of(result.batch):
        assert secret not in text
        assert lookup_form(secret) not in words(text)
    assert result.tally.self_replaced == 0


def test_long_words_that_share_their_beginning_are_told_apart():
    stem = "c" * 16
    vocabulary = [
        stem,
        stem + "a",
        stem + "b",
        stem + "ab",
        stem + "ba",
        "c" * 15,
        "c" * 8,
        "c" * 7,
        "d",
        "e",
    ]
    channel = circle(vocabulary, 2, 2, pool=0)
    for word in vocabulary:
        (released,) = texts_of(
            WordObfuscator(channel, KEY)(batch_of(("n", "p", f"{word} {word.upper()}"))).batch
        )
        outputs = [channel.words[i] for i in channel.row(channel.ids[word])[0]]
        assert set(released.split()) <= set(outputs) and released
    result = WordObfuscator(channel, KEY)(batch_of(("n", "p", f"{stem}c {stem}abc {'c' * 14}")))
    assert (texts_of(result.batch), result.tally.unknown, result.tally.dropped) == ([""], 3, 3)


def test_output_may_be_far_longer_than_the_input():
    vocabulary = ["a", "x" * 3000, "y" * 3000, "z" * 3000]
    notes = [(f"n{i}", "p", "a " * 50) for i in range(20)]
    channel = circle(vocabulary, 3, 3)
    released = texts_of(WordObfuscator(channel, KEY)(batch_of(*notes)).batch)
    assert released == [obfuscate_text_reference(t, n, channel, KEY) for n, _, t in notes]
    assert len(released[0]) == 50 * 3001 - 1


def test_a_note_of_many_blocks_and_a_huge_number():
    text = "pain, José 12 " * 2000 + "7" * 100_000 + " end"
    for way in WAYS:
        (released,) = texts_of(
            WordObfuscator(CHANNEL.under(**way), KEY)(batch_of(("n", "p", text))).batch
        )
        assert released == reference(("n", "p", text), way)


def test_a_large_vocabulary_is_found_word_by_word():
    rng = np.random.default_rng(2)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    vocabulary = sorted({"".join(rng.choice(letters, n)) for n in rng.integers(1, 24, 4_000)})
    channel = circle(vocabulary, 1, 1, pool=0)  # word i always becomes word i + 1
    (released,) = texts_of(
        WordObfuscator(channel, KEY)(batch_of(("n", "p", " ".join(vocabulary)))).batch
    )
    assert released.split() == [*vocabulary[1:], vocabulary[0]]


@pytest.mark.parametrize(
    "text, plain, keep",
    [
        ("q4h", "b b", "b b"),
        ("q 4 h", "b b", "b b"),
        ("q-h", "b b", "b-b"),
        ("(q), h.", "b b", "(b), b."),
        ("  q \n\n h  ", "b b", "b\nb"),
        ("q \t h", "b b", "b b"),
        ("q\u2013h", "b b", "b b"),
        ("q😀h", "b b", "b b"),
        ("q\u2028h", "b b", "b\nb"),
        ("q\x00h", "b b", "b b"),
        ("q 4\n4 h", "b b", "b\nb"),
        ("-", "", "-"),
        ("", "", ""),
        (" \n ", "", ""),
    ],
)
def test_layout_by_hand(text, plain, keep):
    channel = circle(["a", "b"], 1, 1, pool=0)  # a becomes b
    text = text.replace("q", "a").replace("h", "a")
    for layout, expected in (("plain", plain), ("keep", keep)):
        result = WordObfuscator(channel.under(layout=layout), KEY)(batch_of(("n", "p", text)))
        assert texts_of(result.batch) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a a. a", "b b. b."),
        ("a, a! 4. a (a)?", "b b. b b."),  # no sentence without a word
        ("a\na\n\na:\n\n\n", "b b. b."),  # a line that wraps leaves no trace
        ("a.a 3.5 a...", "b b b."),
        (". ! ?", ""),
    ],
)
def test_sentence_ends_by_hand(text, expected):
    channel = circle(["a", "b"], 1, 1, pool=0).under(layout="sentences")
    result = WordObfuscator(channel, KEY)(batch_of(("n", "p", text)))
    assert texts_of(result.batch) == [expected]
    assert result.tally.balanced and result.tally.copied <= result.tally.punct


@pytest.mark.parametrize(
    "text, plain, keep",
    [
        ("a12a", "b ## b", "b##b"),
        ("12.5 mg", "## #", "##.#"),
        ("1\u20132", "# #", "# #"),
        ("१२a", "## b", "##b"),
        ("2024-01-02", "#### ## ##", "####-##-##"),
        ("#5", "#", "##"),
    ],
)
def test_number_masks_by_hand(text, plain, keep):
    channel = circle(["a", "b"], 1, 1, pool=0)
    for layout, expected in (("plain", plain), ("keep", keep)):
        result = WordObfuscator(channel.under(layout=layout, numbers="mask"), KEY)(
            batch_of(("n", "p", text))
        )
        assert texts_of(result.batch) == [expected]


def test_an_output_that_is_no_word_is_refused():
    for bad in ("two words", "it's", "José", "q4h", ""):
        vocabulary = ["a", "b", bad]
        with pytest.raises(InputError) as refusal:
            WordObfuscator(circle(vocabulary, 1, 1), KEY)
        assert not bad or bad not in str(refusal.value)


def test_a_word_that_is_no_output_may_have_any_form():
    vocabulary = ["a", "b", "c", "It's"]
    table = all_others(vocabulary[:3], 1)
    ids = np.vstack([table.ids, [[0]]]).astype(np.int32)
    table = type(table)(ids, np.ones((4, 1), dtype=np.float32), np.array([True, True, True, False]))
    WordObfuscator(neighbour_channel(vocabulary, NeighbourRange(low=1, high=1), table), KEY)


def test_a_null_id_is_refused():
    batch = batch_of(("n", "p", "pain")).set_column(0, "note_id", pa.array([None], pa.string()))
    with pytest.raises(InputError, match="no id"):
        WordObfuscator(CHANNEL, KEY)(batch)


def test_other_columns_and_slices_come_through():
    batch = batch_of(*CORPUS)
    batch = batch.append_column("label", pa.array(range(batch.num_rows)))
    obfuscator = WordObfuscator(CHANNEL, KEY)
    whole = obfuscator(batch)
    part = obfuscator(batch.slice(13, 9))
    assert whole.batch.schema == batch.schema
    assert part.batch.equals(whole.batch.slice(13, 9))
    assert obfuscator(batch.slice(0, 0)).batch.num_rows == 0


def test_plain_strings_and_dictionaries_are_taken():
    batch = batch_of(*CORPUS)
    expected = texts_of(WordObfuscator(CHANNEL, KEY)(batch).batch)
    for kind in (pa.string(), pa.string_view()):
        other = batch.set_column(2, "text", batch.column("text").cast(kind))
        assert texts_of(WordObfuscator(CHANNEL, KEY)(other).batch) == expected


def test_reprs_hold_no_text():
    result = WordObfuscator(CHANNEL, KEY)(batch_of(("n", "p", "smith has pain")))
    assert not {*WORDS} & {*words(repr(result))} - {"a", "of", "in"}
