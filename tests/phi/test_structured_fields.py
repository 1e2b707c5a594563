"""JSON, FHIR, CDA, HL7 and tables inside notes: keys, positions and headings are cues; ages over 89
without a unit.
"""

from __future__ import annotations

import pytest
from marked import found, marked_again, unmark

from clinveil.phi import NoteView
from clinveil.phi.detection.detectors.tables import TABLES

LINES = r"""
{"resourceType":"Patient","id":"{ID:pt-50917}","birthDate":"{DATE:1970-02-11}"}
<patient id="{ID:50917}"><postalCode>{ZIP:18512}</postalCode></patient>
"medicalRecordNumber": "{MRN:H50917}", "pageNumber": "12", "doseNumber": "2", "quantity": 94
"address":[{"line":["{ADDRESS:27 Pinder Court}"],"postalCode":"{ZIP:18512}"}], "status": "final"
"subject":{"reference":"Patient/{ID:a-5091}"}, "age": {AGE:96}, "sex":"F", "bmi": 96
urn:uuid:{ID:0b2a4a1e-3c7d-4b52-9a40-5be9d5c4f001} in the header
PV1|1|I|2W||||||||||||||||{ID:V50917}|||||||||||||||||||||||||{DATE:20190304}101500
Visit#{ID:50917}, Acct#{ACCOUNT:77120}, Hosp No {MRN:50917}, Enc. no. {ID:50918}
Her age is {AGE:93}. At {AGE:93}, she drives. He will be {AGE:91} next month. Ages {AGE:90-93}.
At 93, the pulse was regular. SpO2 at 94, she walked. Weight 93 kg; heart rate is 94.
He turned {AGE:90} today, not 90 degrees; the lens was rotated 90 degrees.
A {AGE:94} y/o man, DOB {AGE:5/6/25}.
A child, DOB {DATE:5/6/19}, and an adult, DOB {AGE:5/6/31}.
""".strip().splitlines()


@pytest.mark.parametrize("marked", LINES)
def test_a_line_is_read_as_it_is_marked(marked):
    braces = marked.replace('{"', "\x01").replace('":{', "\x02").replace("[{", "\x03")
    text, _ = unmark(braces)
    text = text.replace("\x01", '{"').replace("\x02", '":{').replace("\x03", "[{")
    kinds = {"ID", "MRN", "DATE", "ZIP", "ADDRESS", "ACCOUNT", "AGE"}
    spans = [span for span in found(text) if span[2] in kinds]
    assert marked_again(text, spans) == marked


def of_tables(text):
    return [(text[s.start : s.end], s.label) for s in TABLES.find(NoteView(text))]


TEXTS = {
    "pipes": (
        "| Bed | Age | Hosp No |\n|-----|-----|---------|\n| 12 | 96 | H5091 |\n| 14 | 45 |"
        " H5092 |\n"
    ),
    "tabs": "Bed\tAge\tHosp No\n12\t96\tH5091\n14\t45\tH5092\n",
    "semicolons": "Bed;Age;Hosp No\n12;96;H5091\n14;45;H5092\n",
    "commas": "Bed,Age,Hosp No\n12,96,H5091\n14,45,H5092\n",
    "spaces": "Bed   Age   Hosp No\n12    96    H5091\n14    45    H5092\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_columns_of_each_separator(text):
    assert sorted(of_tables(text)) == [("96", "AGE"), ("H5091", "MRN"), ("H5092", "MRN")]


@pytest.mark.parametrize(
    "text",
    [
        "Age, sex and weight were noted.\n96, F, 70\n",
        "| Age | BP |\n\n| 96 | 120/80 |\n",
        "| Item | Age |\n| 96 | 12 |\n",
        "Date | Weight\nMonday | 96\n",
        "Age | 96",
    ],
)
def test_what_is_no_column(text):
    assert of_tables(text) == []


def test_the_work_grows_linearly_with_the_cells():
    text = "| Age | Hosp No |\n" + "| 96 | H5091 |\n" * 50_000
    assert len(of_tables(text)) == 100_000
    assert len(of_tables("| Age |\n" * 50_000)) == 0
