"""Residues: unchanged text that looks like an identifier. Clinical shapes and what the policy keeps
are none.
"""

from __future__ import annotations

import ast
import random
from datetime import date
from pathlib import Path

import pytest

import clinveil.phi.residue
from clinveil.core import Key, Span
from clinveil.corpus import Patient
from clinveil.phi import NoteDeidentifier, ResidueTally
from clinveil.phi.residue import residues
from clinveil.phi.treatment.policy import Policy, TreatedSpan, Treatment

RESEARCH = Policy.of_mode("replace")

# Each identifier alone, with the label of its shape.
IDENTIFIERS = {
    "DATE": [
        "3/4/2019", "03/04/19", "2019-03-04", "4.3.2019", "14.05.21", "3-4-2019", "2019/3/4",
        "1/12-15/93", "March 3", "Mar. 3, 2019", "3rd of March", "24-Dec-2019", "DEC 24",
        "May 2019", "12/2019", "2014-2017", "2014-17", "12/07", "9/03", "3/13", "Q3 2019", "'98",
        "3&#47;4&#47;2021", "3\u20444\u20442021",
    ],
    "PHONE": [
        "216-555-0144", "(216) 555-0144", "(216)555-0144", "216.555.0144", "216 555 0144",
        "216 - 555 - 0144", "555-0144", "+1 216 555 0144", "1-800-555-0199", "07700 900321",
        "020 7946 0018", "216/555/0144", "216\u2011555\u20110144", "216\u200b-555-0144",
        "2165550144", "06 12 34 56 78",
    ],
    "ID": [
        "536-22-1234", "536 22 1234", "0012345", "123456", "12-34-56", "12 34 56", "00-12-34-56",
        "20190304", "5 3 6 2 2 1 2 3 4", "4929 1234 5678 9012", "12345_678", "001-1234-5",
    ],
    "EMAIL": ["j.doe@hosp.org", "jdoe7@mail.example.co.uk", "J_Doe+x@a-b.net"],
    "URL": ["https://portal.example/p/7", "www.hosp.example/x", "clinic.example.com",
        "ftp://files.example"],
    "IP": ["10.1.2.33"],
}  # fmt: skip
BORDERS = [
    ("", ""), ("seen ", " again"), ("-", ""), ("- ", ","), ("(", ")"), ("Phone-", " home"), ("Tel.",
        "."), ("x", ""),
    ("\n", "\n"), (": ", ";"), ("#", " "), ("[", "]"), ("\t", "\t"), ("“", "”"), ("=", "="), ("|",
        "|"), ("*", "*"),
]  # fmt: skip
CLINICAL = [
    "BP 120/80, 166/116 and 120/80-140/90", "lidocaine with 1:100,000 epinephrine, 1:200000",
    "platelets 250,000", "platelets 152000", "ABG 7.38/67/86/97",
    "HCTZ 37.5/25, 500/400 mg, 800/160 mg, 10-325 mg", "H&H 37.4/12.1",
    "500-1000 mL, 400-600 mg, glucose 117-183, 20.8-22.6 and 98.6-102.4", "50-100,000 colonies",
    "0.123456 and 1234.56", "at 08:15:30, 3:00-6:00",
    "LOINC 2345-7, ICD 723.1/723.4, CPT 22851-59, SNOMED 38341003", "GCS 13/15, MMSE 28/30",
    "trial NCT01234567, PMID 12345678",
    '<td style="color:#003366; border: 1px solid #112233" bgcolor="#000000">',
    "2.16.840.1.113883.10.20.22", "<html xmlns=\"http://www.w3.org/1999/xhtml\">",
    "strength 5/5, 4/5-5/5, pain 3/10-4/10, murmur 2/6",
    "lead 4568-45 cm", "section 2.1.1.3, levels 3-4-5-6",
    "heparin 5000 units, 1000000 units", "6/14 OD, 1/16 inch, 20/400", "she may 2 times, mar 5",
    "height 5'10\"", "Na 140 103 24 1.2", "CD4 350, T12-L1, C5-C6", "3 x 4 cm, 10^6", "q4-6h, q12h",
    "1,240,000", "A-dec 2 tablets",
]  # fmt: skip


def found(text, *, policy=RESEARCH, **more):
    return [(text[r.start : r.end], r.label) for r in residues(text, [], [], policy, **more)]


@pytest.mark.parametrize("label", IDENTIFIERS)
def test_every_shape_is_found_between_every_pair_of_borders(label):
    for shape in IDENTIFIERS[label]:
        for before, after in BORDERS:
            text = before + shape + after
            digits_before = before.isalpha() and not shape[0].isdigit()
            if digits_before or (
                shape[0] == "'" and before not in ("", "seen ", "(", "- ", "\n", "\t")
            ):
                continue  # a word, or a quotation
            if shape[:1].isalpha() and before.endswith("-") and before[:-1].isalpha():
                continue
            assert found(text), repr(text)
        assert label in {kind for _, kind in found(f"seen {shape} again")}, shape


@pytest.mark.parametrize("text", CLINICAL)
def test_clinical_shapes_are_no_residues(text):
    assert found(text) == []


def test_dates_of_a_range_are_separate_residues():
    assert [text for text, _ in found("ICU 3/4/2019-3/9/2019")] == ["3/4/2019", "3/9/2019"]
    assert [text for text, _ in found("12/24-12/27/19")] == ["12/24", "12/27/19"]


def test_a_date_that_equals_a_shifted_date_is_compared_by_position():
    text = "3/4/2019 and 3/9/2019"
    spans = [Span(0, 8, "DATE"), Span(13, 21, "DATE")]
    shifted = [TreatedSpan("3/9/2019", Treatment.SHIFT), TreatedSpan("3/14/2019", Treatment.SHIFT)]
    assert residues(text, spans, shifted, RESEARCH) == []
    assert residues(text, spans[1:], shifted[1:], RESEARCH)[0][:2] == (0, 8)


def test_the_unchanged_half_of_an_identifier_is_a_residue():
    span = Span(9, 13, "PHONE")
    assert found_after("216-555-0144", [Span(8, 12, "PHONE")]) == ["216-555"]
    assert found_after("3/4/2019-3/9/2019", [span]) == ["3/4/2019"]


def found_after(text, spans):
    left = residues(text, spans, [TreatedSpan("[X]", Treatment.TAG)] * len(spans), RESEARCH)
    return [text[r.start : r.end].rstrip("-") for r in left]


def test_a_replacement_that_equals_its_identifier_is_a_residue():
    text = "call 216-555-0144"
    span = Span(5, 17, "PHONE")
    same = [TreatedSpan("216-555-0144", Treatment.SURROGATE)]
    assert [r.label for r in residues(text, [span], same, RESEARCH)] == ["PHONE"]
    assert residues(text, [span], [TreatedSpan("216-555-0144", Treatment.KEEP)], RESEARCH) == []


def test_what_the_policy_keeps_is_no_residue():
    limited = Policy.of_profile("limited-dataset")
    harbor = Policy.of_profile("safe-harbor")
    assert found("seen 3/4/2019, 216-555-0144", policy=limited) == [("216-555-0144", "PHONE")]
    assert found("from 2014-2017, Q3 2019", policy=harbor) == []  # years may stay
    assert found("from 2014-2017") == [("2014-2017", "DATE")]


def test_excused_ranges_are_no_residues():
    assert found("a 123456 b 654321", excused=[(2, 8)]) == [("654321", "ID")]


PATIENT = Patient(
    "p1",
    ("Rose", "Okwuosa-White"),
    record_numbers=("00-4711",),
    phones=("216-555-0144",),
    addresses=("12 Larkspur Lane, Halton 44107",),
    birth_date=date(1950, 3, 4),
)


def test_words_of_the_patients_row():
    assert found("OKWUOSA slept", patient=PATIENT) == [("OKWUOSA", "NAME")]
    assert found("okwuosa, rose", patient=PATIENT) == [("okwuosa", "NAME"), ("rose", "NAME")]
    assert found("Larkspur, zip 44107; no. 4711", patient=PATIENT) == [
        ("Larkspur", "ADDRESS"),
        ("44107", "ADDRESS"),
        ("4711", "MRN"),
    ]
    assert found("Okwuosa", patient=Patient("p2", ("Ann", "Brixtow"))) == []


def test_an_ordinary_word_of_the_row_needs_a_neighbour_of_the_row_or_a_title():
    assert found("White count rose. The pain rose.", patient=PATIENT) == []
    assert found("Mrs. White slept", patient=PATIENT) == [("White", "NAME")]


def test_an_excuse_does_not_hide_the_patients_own_row():
    assert found("Okwuosa", patient=PATIENT, excused=[(0, 7)]) == [("Okwuosa", "NAME")]


def test_the_allowed_number_of_notes_is_the_share_rounded_up_unless_notes_are_few():
    allowed = [ResidueTally(notes).allowed(0.01) for notes in (19, 20, 100, 101, 1796)]
    assert allowed == [0, 1, 1, 2, 18]
    assert ResidueTally(1000).allowed(0) == 0


def test_the_recogniser_imports_nothing_of_the_detectors():
    folder = Path(clinveil.phi.residue.__file__).parent
    names = {
        name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom | ast.Import)
        for name in [getattr(node, "module", "") or "", *(alias.name for alias in node.names)]
    }
    assert not [
        name for name in names if "phi.detection" in name or "matching" in name or "name_" in name
    ]


@pytest.mark.parametrize(
    "piece",
    ["1", "1 ", "1-", "12/", "a@", "(123) ", "1,234", "<td>1</td>", "123 456 7890 ", "&#1;1"],
)
def test_a_note_of_digits_is_read_in_a_number_of_steps_that_grows_with_it(piece):
    """A pattern with quadratic time would not end on these notes."""
    text = piece * (1_000_000 // len(piece))
    assert len(residues(text, [], [], RESEARCH)) <= len(text)


def test_treatment_counts_residues_and_records_a_bounded_number():
    deidentifier = NoteDeidentifier(Key.from_seed(1), finders=[])
    rng = random.Random(3)
    text = " ".join(f"on {rng.randint(1, 12)}/{rng.randint(1, 28)}/2019" for _ in range(500))
    result = deidentifier(batch_of(("n1", "p1", text), ("n2", "p1", "stable")))
    assert (result.tally.notes, result.tally.notes_with_residues, result.tally.labels["DATE"]) == (
        2,
        1,
        500,
    )
    assert 0 < len(result.residues) < 500
    assert result.residues[0].context.startswith("on ")


def batch_of(*rows):
    from clinveil.corpus import memory_corpus

    return next(iter(memory_corpus(list(rows)).batches()))
