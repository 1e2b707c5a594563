"""Gold spans as JSON lines, BRAT and i2b2/n2c2 XML: there and back, other tools' offsets and
labels, bad input.
"""

from __future__ import annotations

import json
import shlex
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from span_files import TYPES, write_spans

from clinveil.cli import main
from clinveil.core import LABELS, InputError, Span, UsageError
from clinveil.corpus import Scheme, open_corpus, read_labels, read_spans, rows
from clinveil.corpus.formats.folders import document, read_xml
from clinveil.corpus.gold import FileMark, known_labels

UNITS = ("codepoints", "bytes", "utf16")
# No control characters: XML has none of them.
_CHARACTERS = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
TEXT = st.text(_CHARACTERS | st.sampled_from("\r\n\t ]>&<😀é"), min_size=1, max_size=40)


@st.composite
def annotated(draw):
    text = draw(TEXT)
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    labels = draw(st.lists(st.sampled_from(sorted(LABELS)), min_size=len(cuts), max_size=len(cuts)))
    ends = zip(cuts[::2], cuts[1::2], labels, strict=False)
    return text, [
        Span(start, end, label) for start, end, label in ends if label not in ("AGE", "PHOTO")
    ]


@pytest.mark.parametrize("offsets", UNITS)
@pytest.mark.parametrize("kind", ["jsonl", "brat", "i2b2"])
@settings(max_examples=40, deadline=None, database=None)
@given(data=st.lists(annotated(), min_size=1, max_size=4))
def test_spans_come_back(kind, offsets, data):
    notes = [(f"a/n{number}", text, spans) for number, (text, spans) in enumerate(data)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / ("gold.jsonl" if kind == "jsonl" else "gold")
        write_spans(place, notes, kind, offsets)
        gold = read_spans(place, Scheme(offsets))
        assert set(gold.marks) == {note_id for note_id, _, _ in notes}
        for note_id, text, spans in notes:
            assert gold.of(note_id, text) == spans
        if kind != "jsonl":  # the notes themselves too
            assert [note.text for note in rows(open_corpus(place))] == [
                text for _, text, _ in notes
            ]


def test_every_label_has_a_tag_and_comes_back_by_its_own_name():
    assert set(TYPES) == set(LABELS)
    for label, kind in TYPES.items():
        assert known_labels()[kind] == ("AGE>89" if label == "AGE" else label)


I2B2 = """<?xml version="1.0" encoding="UTF-8" ?>
<deIdi2b2>
<TEXT><![CDATA[Dr. Ada Fox saw a 93 yo baker,
not a 45 yo one, on 3/4.]]></TEXT>
<TAGS>
<NAME id="P0" start="4" end="11" text="Ada Fox" TYPE="DOCTOR" comment="" />
<AGE id="P1" start="18" end="20" text="93" TYPE="AGE" comment="" />
<PROFESSION id="P2" start="24" end="29" text="baker" TYPE="PROFESSION" comment="" />
<AGE id="P3" start="37" end="39" text="45" TYPE="AGE" comment="" />
<DATE id="P4" start="51" end="54" text="3/4" TYPE="DATE" comment="" />
</TAGS>
</deIdi2b2>
"""


def test_i2b2_labels_become_ours_and_young_ages_none(tmp_path):
    (tmp_path / "100-01.xml").write_text(I2B2)
    [note] = rows(open_corpus(tmp_path))
    assert note.note_id == "100-01"
    spans = read_spans(tmp_path).of(note.note_id, note.text)
    assert [(note.text[s.start : s.end], s.label) for s in spans] == [
        ("Ada Fox", "NAME"),
        ("93", "AGE"),
        ("3/4", "DATE"),
    ]


def test_brat_with_fragments_notes_and_crlf(tmp_path):
    (tmp_path / "n.txt").write_bytes(b"Ada saw Dr. Fox.\r\n")
    ann = (
        "T1\tPerson 0 3;12 15\tAda Fox\r\nA1\tSure T1\r\n#1\tAnnotatorNotes T1\tx\r\nR1\tOf Arg1:T1"
        " Arg2:T1\r\n"
    )
    (tmp_path / "n.ann").write_bytes(ann.encode())
    [note] = rows(open_corpus(tmp_path))
    assert read_spans(tmp_path).of("n", note.text) == [Span(0, 3, "NAME"), Span(12, 15, "NAME")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("T1 NAME 0 3\tAda", "n.ann, line 2: not a line of BRAT"),
        ("T1\tNAME 0 three\tAda", "n.ann, line 2: not a line of BRAT"),
        ("T1\tNAME 5 3\tAda", "n.ann, line 2: a span needs"),
        ("T1\tNAME 0 99\tAda", "n.ann, line 2: the span ends at 99, but the note ends at 12"),
        ("T1\tSECRET_THING 0 3\tAda", "n.ann, line 2: unknown label"),
        ("T1\tNAME 0 3\tBob", "n.ann, line 2: the span's text differs"),
        ("T1\tNAME 0 5\tAda w", "n.ann, line 1: two spans overlap"),
    ],
)
def test_bad_lines_of_brat_are_named(tmp_path, line, said):
    (tmp_path / "n.txt").write_text("Ada was here")
    (tmp_path / "n.ann").write_text(f"T0\tNAME 4 7\twas\n{line}\n")
    with pytest.raises(InputError) as caught:
        read_spans(tmp_path).of("n", "Ada was here")
    assert str(caught.value).startswith(said)
    assert not {"Ada", "Bob"} & set(str(caught.value).split())


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y'
    ' "&x;&x;">]><deIdi2b2><TEXT>&y;</TEXT></deIdi2b2>'
)
OUTSIDE = (
    '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><deIdi2b2><TEXT>&x;</TEXT></deIdi2b2>'
)


@pytest.mark.parametrize(
    ("xml", "said"),
    [
        (BOMB, "document types and entities"),
        (OUTSIDE, "document types and entities"),
        ("<deIdi2b2><TEXT>Ada", "line 1: not well-formed XML"),
        ("", "line 1: not well-formed XML"),
        ("<deIdi2b2/>", "one <TEXT>"),
        ("<deIdi2b2><TEXT>a<b/>c</TEXT></deIdi2b2>", "one <TEXT>"),
        ('<?xml version="1.0" encoding="x-none"?><a/>', "unknown encoding"),
        ('<a><TEXT>Ada</TEXT><TAGS><NAME start="0"/></TAGS></a>', "a tag without start and end"),
        (
            '<a><TEXT>Ada</TEXT><TAGS><NAME start="0" end="b"/></TAGS></a>',
            "a tag without start and end",
        ),
    ],
)
def test_bad_xml_is_refused_in_one_line(tmp_path, xml, said):
    (tmp_path / "n.xml").write_text(xml)
    with pytest.raises(InputError) as caught:
        read_spans(tmp_path)
    assert said in str(caught.value)
    assert "Ada" not in str(caught.value)


def test_bad_xml_is_refused_as_notes_too(tmp_path):
    (tmp_path / "n.xml").write_text(BOMB)
    with pytest.raises(InputError, match="document types and entities"):
        list(open_corpus(tmp_path).batches())


def test_carriage_returns_and_the_end_of_cdata_stay(tmp_path):
    text = "a\r\nb]]>c\rd<&>\t]]]>"
    write_spans(tmp_path, [("n", text, [Span(0, len(text), "NAME")])], "i2b2")
    assert read_xml(tmp_path / "n.xml")[0] == text
    assert read_spans(tmp_path).of("n", text) == [Span(0, len(text), "NAME")]


def test_xml_has_no_control_characters():
    with pytest.raises(InputError, match="control character"):
        document("a\x0bb")


def test_other_units_of_offsets():
    text = "é😀 Ada"  # é is 2 bytes and 1 unit, 😀 4 and 2
    for unit, start in (("codepoints", 3), ("bytes", 7), ("utf16", 4)):
        assert Scheme(unit).spans(text, [FileMark(start, start + 3, "NAME", "x", "Ada")]) == [
            Span(3, 6, "NAME")
        ]
    for unit, inside in (("bytes", 3), ("utf16", 2)):
        with pytest.raises(InputError, match="within a character"):
            Scheme(unit).spans(text, [FileMark(inside, 7, "NAME", "x")])
    with pytest.raises(InputError, match="--offsets bytes or utf16"):
        Scheme().spans(text, [FileMark(4, 6, "NAME", "x", "Ada")])


LINES = [
    ("{", "line 1: not a JSON object"),
    ("[1]", "line 1: not a JSON object"),
    ('{"note_id": "n", "start": 0, "end": 3}', "line 1: a span needs"),
    ('{"note_id": "n", "start": "0", "end": 3, "label": "NAME"}', "line 1: a span needs"),
    ('{"note_id": "n", "start": true, "end": 3, "label": "NAME"}', "line 1: a span needs"),
    ('{"note_id": null, "start": 0, "end": 3, "label": "NAME"}', "line 1: a span needs"),
]


@pytest.mark.parametrize(("line", "said"), LINES)
def test_bad_json_lines_are_named(tmp_path, line, said):
    (tmp_path / "s.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=said):
        read_spans(tmp_path / "s.jsonl")


def test_a_note_without_spans_may_be_named_and_unknown_notes_are_refused(tmp_path):
    lines = [
        {"note_id": "a"},
        {"note_id": 7, "start": 0, "end": 3, "label": "NAME", "text": "Ada", "score": 1},
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    gold = read_spans(tmp_path / "s.jsonl")
    assert gold.of("a", "x") == []
    assert gold.of("7", "Ada") == [Span(0, 3, "NAME")]
    gold.refuse_unknown(["7"])  # a note without spans is not missed
    with pytest.raises(InputError, match="spans of 1 notes that are not among the notes"):
        gold.refuse_unknown(["a"])


def test_labels_of_a_site(tmp_path):
    (tmp_path / "l.toml").write_text('Koepel = "HOSPITAL"\n"job-title" = ""\n')
    scheme = Scheme(labels=read_labels(tmp_path / "l.toml"))
    marks = [FileMark(0, 3, "koepel", "x"), FileMark(4, 7, "JOB_TITLE", "x")]
    assert scheme.spans("Ada was here", marks) == [Span(0, 3, "HOSPITAL")]
    (tmp_path / "l.toml").write_text('Koepel = "TEMPLE"\n')
    with pytest.raises(UsageError, match="unknown label"):
        read_labels(tmp_path / "l.toml")
    (tmp_path / "l.toml").write_text("Koepel =")
    with pytest.raises(InputError, match="not a TOML file"):
        read_labels(tmp_path / "l.toml")


def test_what_is_no_form_of_spans(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_spans(tmp_path / "none")
    (tmp_path / "s.csv").touch()
    for place in (tmp_path / "s.csv", tmp_path):
        with pytest.raises(InputError, match="unknown format of spans"):
            read_spans(place)


def test_a_link_that_leads_out_is_refused(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "n.xml").write_bytes(document("Ada"))
    (tmp_path / "in" / "n.xml").symlink_to(tmp_path / "n.xml")
    with pytest.raises(InputError, match="points outside the folder"):
        read_spans(tmp_path / "in")


def test_deidentify_takes_xml_and_gives_xml(tmp_path):
    text = "Dr. Éva 😀 Fox\r\nsaw Ada on 3/4."
    write_spans(
        tmp_path / "xml", [("a", text, [Span(19, 22, "NAME")]), ("b", "no names", [])], "i2b2"
    )
    arguments = shlex.split(
        f"{tmp_path / 'xml'} -o {tmp_path / 'out'} --set identifiers.mode=tag --workers 1"
    )
    assert main(["deidentify", *arguments, "--keep-ids", "--set", "quiet=true"]) == 0
    assert sorted(path.name for path in (tmp_path / "out").glob("*.xml")) == ["a.xml", "b.xml"]
    texts = {note.note_id: note.text for note in rows(open_corpus(tmp_path / "out"))}
    assert "[NAME]" in texts["a"] and "Ada" not in texts["a"] and "\r\n" in texts["a"]
    assert "<TAGS>\n</TAGS>" in (tmp_path / "out" / "a.xml").read_text()
