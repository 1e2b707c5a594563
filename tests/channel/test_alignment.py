"""Alignment: the place of the source word behind every released word."""

from __future__ import annotations

from channel_cases import WORDS, batch_of, circle, texts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.channel.apply import ALIGNMENT, Obfuscator
from clinveil.core.keys import Key
from clinveil.core.tokens import Kind, lookup_form, tokenize, words

KEY = Key.from_seed(1)


def aligned(text: str, pool: int = 6, **how: str) -> tuple[str, list[tuple[int, int]]]:
    result = Obfuscator(circle(pool=pool).under(**how), KEY, align=True)(batch_of(("n", "p", text)))
    assert result.alignment.schema == ALIGNMENT
    rows = result.alignment.to_pydict()
    return texts_of(result.batch)[0], list(zip(rows["start"][0], rows["end"][0], strict=True))


def test_places_by_hand():
    text = "Jose\u0301 has 😀 sm\u200bith's 12 q4h"
    _, places = aligned(text)
    assert [text[a:b] for a, b in places] == ["Jose\u0301", "has", "sm\u200bith", "s", "q", "h"]


def test_dropped_words_have_no_place():
    text = "pain zebra fever, José zebra"
    _, places = aligned(text, pool=0)
    assert [text[a:b] for a, b in places] == ["pain", "fever", "José"]


@given(st.text(max_size=80), st.sampled_from(["plain", "keep"]), st.sampled_from(["drop", "mask"]))
@settings(deadline=None, max_examples=200)
def test_places_are_the_word_tokens_in_order(text, layout, numbers):
    released, places = aligned(text, layout=layout, numbers=numbers)
    assert places == [(t.start, t.end) for t in tokenize(text) if t.kind == Kind.WORD]
    assert len(words(released)) == len(places)


def test_places_join_source_and_release_word_by_word():
    channel = circle(low=1, high=1)  # each word becomes the next
    text = "The patient, José: has (pain) in CHEST."
    result = Obfuscator(channel.under(layout="keep"), KEY, align=True)(batch_of(("n", "p", text)))
    rows = result.alignment.to_pydict()
    for start, end, released in zip(
        rows["start"][0], rows["end"][0], words(texts_of(result.batch)[0]), strict=True
    ):
        assert released == WORDS[WORDS.index(lookup_form(text[start:end])) + 1]


def test_rows_are_the_written_notes():
    notes = [("a", "p", "pain in chest"), ("b", "p", None), ("c", "p", ""), ("d", "p", "fever")]
    rows = Obfuscator(circle(), KEY, align=True)(batch_of(*notes)).alignment.to_pydict()
    assert rows == {
        "note_id": ["a", "c", "d"],
        "start": [[0, 5, 8], [], [0]],
        "end": [[4, 7, 13], [], [5]],
    }


def test_places_survive_a_buffer_that_grows():
    vocabulary = ["a", "x" * 3000, "y" * 3000]
    result = Obfuscator(circle(vocabulary, 2, 2), KEY, align=True)(
        batch_of(("n", "p", "a " * 400), ("m", "p", "a a"))
    )
    rows = result.alignment.to_pydict()
    assert rows["start"] == [[2 * i for i in range(400)], [0, 2]]


def test_no_alignment_unless_asked():
    assert Obfuscator(circle(), KEY)(batch_of(("n", "p", "pain"))).alignment is None
