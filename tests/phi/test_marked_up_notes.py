"""Identifiers in HTML and XML are found across tags and references, and replaced in place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.cli import main
from clinveil.core import Key, visible_text
from clinveil.phi import NoteDeidentifier

TAGGED = (
    ("<p>Seen by Dr. O<b>kwuo</b>sa</p>", "<p>Seen by Dr. [NAME]<b></b></p>"),
    ("<p>Dr. O&#39;Shaughnessy came</p>", "<p>Dr. [NAME] came</p>"),
    (
        "<p>Mr.&nbsp;Jos&eacute;&nbsp;Nu&ntilde;ez, seen 3&#47;4&#47;2021.</p>",
        "<p>Mr.&nbsp;[NAME], seen [DATE].</p>",
    ),
    ("<p>Dr. Sarah\n   <i class='x'>Miller</i> agrees</p>", "<p>Dr. [NAME]<i></i> agrees</p>"),
    (
        "<a href='mailto:ann.lee@site.org'>Write</a><img alt='Photo of Mr. John Okwuosa'>",
        "<a href='mailto:[EMAIL]'>Write</a><img alt='Photo of Mr. [NAME]'>",
    ),
    ("<p>x</p><!-- Dictated by Dr. Okwuosa -->", "<p>x</p><!-- Dictated by Dr. [NAME] -->"),
    (
        "<tr><td>Patient Name</td><td>Ann Okwuosa</td></tr>",
        "<tr><td>Patient Name</td><td>[NAME]</td></tr>",
    ),
    (
        '<patient><id extension="77-812"/><name><given>Ann</given><family>Okwuosa</family></name>'
        '<birthTime value="19820514"/><postalCode>44107</postalCode></patient>',
        '<patient><id extension="[ID]"/><name><given>[NAME]</given><family>[NAME]</family></name>'
        '<birthTime value="[DATE]"/><postalCode>[ZIP]</postalCode></patient>',
    ),
    ("<p>BP <120 & K < 3.5, H&P</p>", "<p>BP <120 & K < 3.5, H&P</p>"),
    ("<p>fine</p><script>let n = 'Dr. Okwuosa';</script><style>p {}</style>!", "<p>fine</p>!"),
)


@pytest.fixture
def tagging() -> NoteDeidentifier:
    return NoteDeidentifier(Key.from_seed(1), mode="tag")


@pytest.mark.parametrize(("source", "wanted"), TAGGED)
def test_replacements_are_written_in_place(
    tagging: NoteDeidentifier, source: str, wanted: str
) -> None:
    assert tagging.treat(source, tagging.find(source))[0] == wanted


@pytest.mark.parametrize("mode", ["tag", "replace"])
def test_the_reported_case_of_html_with_references(
    mode: str, real_data: Callable[[str], Path]
) -> None:
    lines = real_data("phi/public_cases.jsonl").read_text(encoding="utf-8").splitlines()
    case = next(case for case in map(json.loads, lines) if case["id"] == "R7")
    deidentifier = NoteDeidentifier(Key.from_seed(1), mode=mode)
    treated, _ = deidentifier.treat(case["text"], deidentifier.find(case["text"]))
    gone = [part for part in case["must_go"] if mode == "tag" or part not in ("2021", "ez<")]
    assert not [part for part in gone if part in treated]
    assert "ntilde" not in treated
    assert all(part in treated for part in case["must_stay"])
    assert treated.startswith("<p><b>Patient:</b>&nbsp;")
    assert treated.endswith("</p>")


def test_a_replacement_is_escaped(
    tagging: NoteDeidentifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    import clinveil.phi.treatment.deidentifier as module

    monkeypatch.setattr(module, "tag", lambda label: f'<{label} & "x">')
    source = "<img alt='Mr. John Okwuosa'><p>Mr. John Okwuosa</p>"
    treated, _ = tagging.treat(source, tagging.find(source))
    assert "alt='Mr. &lt;NAME &amp; &quot;x&quot;&gt;'" in treated
    assert '<p>Mr. &lt;NAME &amp; "x"&gt;</p>' in treated


def test_surrogates_agree_with_the_plain_note() -> None:
    deidentifier = NoteDeidentifier(Key.from_seed(1))
    plain = "Mr. John Okwuosa was seen on 3/4/2021. Okwuosa's wife called."
    marked = "<p>Mr. John O<b>kwuosa</b> was seen on 3&#47;4/2021. Okwuosa&#39;s wife called.</p>"
    of_plain, _ = deidentifier.treat(plain, deidentifier.find(plain, "p"), "p")
    of_marked, _ = deidentifier.treat(marked, deidentifier.find(marked, "p"), "p")
    assert visible_text(of_marked) == of_plain


NOTES = [
    (
        "n1",
        "p1",
        "<p>Mr. John O<b>kwuosa</b> came with Dr. Nu&ntilde;ez.</p><script>'Okwuosa'</script>",
    ),
    ("n2", "p1", "<p>He was fine. Okwuosa's wife called on 3&#47;4&#47;2021.</p>"),
    ("n3", "p2", "Plain: BP <120, H&P, R&D, stable."),
]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.parquet"
    ids, patients, texts = zip(*NOTES, strict=True)
    pq.write_table(pa.table({"note_id": ids, "patient_id": patients, "text": texts}), path)
    return path


def test_names_propagate_and_are_restored(notes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    back = tmp_path / "back.parquet"
    given = ["--crosswalk", "--spans", "--set", "identifiers.mode=tag", "--keep-ids"]
    assert main(["deidentify", str(notes), "-o", str(out), *given]) == 0
    texts = pq.read_table(out).column("text").to_pylist()
    assert texts[0] == "<p>Mr. [NAME]<b></b> came with Dr. [NAME].</p>"
    assert texts[1] == "<p>He was fine. [NAME]'s wife called on [DATE].</p>"
    assert texts[2] == NOTES[2][2]
    vault = f"{out}.vault"
    assert (
        main(["reidentify", str(out), "-o", str(back), "--vault", vault, "--reason", "test"]) == 0
    )
    assert pq.read_table(back).column("text").to_pylist() == [text for _, _, text in NOTES]


def test_vectors_are_trained_on_what_is_displayed(tmp_path: Path) -> None:
    from clinveil.vectors import load_vectors

    texts = [
        f"<p class='zzclass'>The <b>pa</b>tient is&nbsp;stable {number}</p>" for number in range(40)
    ]
    path = tmp_path / "notes.parquet"
    pq.write_table(pa.table({"note_id": list(map(str, range(40))), "text": texts}), path)
    assert (
        main(["embed", str(path), "-o", str(tmp_path / "vectors"), "--dim", "8", "--workers", "1"])
        == 0
    )
    words = set(load_vectors(tmp_path / "vectors").words)
    assert {"the", "patient", "is", "stable"} <= words
    assert not words & {"p", "b", "pa", "tient", "nbsp", "class", "zzclass"}


def test_inspect_counts_marked_up_notes(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(notes)]) == 0
    assert re.search(r"marked up\s+2\s+66\.7%", capsys.readouterr().out)
