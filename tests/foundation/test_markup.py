"""The text of marked-up notes, its map to the source, and what is no markup."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import is_markup, read_markup, visible_text

PLAIN = (
    "BP <120 and K < 3.5, HR >60",
    "H&P, R&D, A&E, AT&T; J&J; S&P&L",
    "Letter to <jsmith@hospital.org>, cc <Dr. Lee>",
    "a <b and c> d; x<y>z; if (a < b && c > d)",
    "<unknown> and <name redacted> and <<see note>>",
    "Temp <39 & stable; 5 < 6 &amp 7",
    "{NAME:Foley} [**Known lastname 123**] <-- here -->",
)
MARKED = (
    ("<p>Seen</p>", "Seen"),
    ("a<br>b<BR/>c", "a\nb\nc"),
    ("R&amp;D at 3&#47;4&#x2F;2021", "R&D at 3/4/2021"),
    ("Jos&eacute; Nu&ntilde;ez&nbsp;MD", "José Nuñez\xa0MD"),
    ("O<b>kwuo</b>sa", "Okwuosa"),
    ("<b>Name</b><i>Okwuosa</i>", "Name Okwuosa"),
    ("March 1<sup>st</sup>, 2020", "March 1st, 2020"),
    ("<td>Age</td><td>94</td>", "Age\t94"),
    ("<p>John\n    Okwuosa</p>", "John Okwuosa"),
    ("<p>x</p><pre>a\n  b</pre>", "x\na\n  b"),
    ("Name: Ann&nbsp;Lee\nDOB: 1&#47;2", "Name: Ann\xa0Lee\nDOB: 1/2"),
    ("&amp;amp;nbsp;&amp;#39;", "\xa0'"),
    ("x<script>var n = '<p>Okwuosa</p>';</script>y<style>p {}</style>z</p>", "xyz"),
    ("<!-- Okwuosa -->x<!DOCTYPE html><?xml version='1.0'?>", "x"),
    ("<a><![CDATA[x < y & z]]></a>", "x < y & z"),
    ("<postalCode>44107</postalCode>", '"postalCode": "44107"'),
    ("<n:name><n:given>Ann</n:given></n:name>", '"given": "Ann"'),
    ("<text>Seen <b>today</b>.</text>", "text: Seen today."),
    # Not well formed: text.
    ("<p>one <!-- never closed <b>two</b>", "one <!-- never closed two"),
    ("<p>one <script>two", "one \ntwo"),
    ('<p title="open>one</p>', "one"),
    ("<p>K <3.5, pH <7, x <y>, <Smith> z</p>", "K <3.5, pH <7, x <y>, <Smith> z"),
    ("<p>&unknown; &#x0; a &b</p>", "&unknown; \ufffd a &b"),
    ("</b></p></", "</"),
)


@pytest.mark.parametrize("text", PLAIN)
def test_signs_and_words_in_brackets_are_no_markup(text: str) -> None:
    assert not is_markup(text)
    assert read_markup(text) is None
    assert visible_text(text) is text


@pytest.mark.parametrize(("source", "visible"), MARKED)
def test_what_is_displayed(source: str, visible: str) -> None:
    assert is_markup(source)
    assert visible_text(source).strip() == visible.strip()


def hidden(source: str) -> str:
    markup = read_markup(source)
    assert markup is not None
    return markup.text[markup.main :]


def test_attribute_values_comments_and_declarations_are_hidden_lines() -> None:
    source = (
        "<img alt=\"Photo of Ann &amp; O'Neil\" title='Lee' width=120 style='font-family: Arial;"
        " margin: 2px'><input name=patient value='Ann Lee'><birthDate value='1962-03-14'/><!-- by"
        " Okwuosa --><p hidden>"
    )
    lines = [line for line in hidden(source).splitlines() if line.strip("\0 ")]
    assert lines == [
        "alt: Photo of Ann & O'Neil",
        "title: Lee",
        "name: patient",
        "patient: Ann Lee",
        '<birthDate value="1962-03-14"/>',
        " by Okwuosa ",
        "hidden",
    ]


def test_styles_with_a_word_of_another_kind_are_seen() -> None:
    assert "Okwuosa" in hidden("<p style='font-family: Okwuosa'>x</p>")
    assert "MsoNormal" not in hidden("<p class=MsoNormal title=a>x</p>")


def test_ranges_of_the_text_map_to_the_source_and_back() -> None:
    source = "<p>Dr. O<b title='Ann'>kwuo</b>sa, Jos&eacute;&nbsp;Nu&ntilde;ez</p><!-- Lee -->"
    markup = read_markup(source)
    assert markup is not None
    for word, written in (
        ("Okwuosa", "O<b title='Ann'>kwuo</b>sa"),
        ("Ann", "Ann"),
        ("José\xa0Nuñez", "Jos&eacute;&nbsp;Nu&ntilde;ez"),
        ("Lee", "Lee"),
    ):
        start = markup.text.index(word)
        place = markup.to_source(start, start + len(word))
        assert source[slice(*place)] == written
        assert markup.to_text(*place) == (start, start + len(word))
    assert markup.tags(*markup.to_source(4, 11)) == "<b></b>"


TAGS = (
    """<p> </p> <b> </b> <td> <x> </x> <!-- --> <![CDATA[ ]]> <p/title='a/b'> <script> </script>"""
)
PIECES = st.sampled_from([*TAGS.split(), "&amp;", "&#39;", *"&<>\"' \n", "Okwuosa", "é", "x"])


@given(st.lists(PIECES, max_size=30))
def test_every_character_of_the_text_maps_to_a_range_of_the_source(pieces: list[str]) -> None:
    source = "".join(pieces)
    markup = read_markup(source)
    if markup is None:
        return
    before = 0
    for position in range(markup.main):
        start, end = markup.to_source(position, position + 1)
        assert before <= start <= end <= len(source) + 1
        before = start
        character = markup.text[position]
        if character.isalnum() and "&" not in source:
            assert source[start:end] == character


LARGE: dict[str, Callable[[int], str]] = {
    "table": lambda n: (
        "<table>" + "<tr><td>Age</td><td>5&nbsp;x</td></tr>" * (n // 10) + "</table>"
    ),
    "digits": lambda n: "1" * (40 * n),
    "open tags": lambda n: "<" * (2 * n) + "</p>",
    "open quotes": lambda n: "<a '" * n + "</p>",
    "open comments": lambda n: "<!--" * n + "</p>",
    "open sections": lambda n: "<![CDATA[ ]]" * n + "</p>",
    "open scripts": lambda n: "<script>" * (n // 2) + "</p>",
    "attributes": lambda n: "<a " + "b='c' " * (n // 4) + "></a>",
    "nested references": lambda n: "&amp;" * n + "&" + "amp;" * n,
    "white space": lambda n: "<p>" + " \t" * (4 * n) + "\n</p>",
    "elements": lambda n: "<x><y z='1'/></x>" * (n // 5),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_and_malformed_notes_take_linear_time(name: str) -> None:
    seconds = []
    for size in (50_000, 250_000):
        text = LARGE[name](size)
        began = time.process_time()
        read_markup(text)
        seconds.append(time.process_time() - began)
    assert seconds[1] < 12 * seconds[0] + 0.3  # 25 times as long if quadratic


def test_a_table_of_100_000_cells_loses_nothing() -> None:
    cells = [f"c{number}" for number in range(100_000)]
    rows = (cells[start : start + 10] for start in range(0, len(cells), 10))
    source = (
        "<table>"
        + "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in rows)
        + "</table>"
    )
    assert visible_text(source).split() == cells
