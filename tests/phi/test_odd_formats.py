"""Dates, numbers and handles in formats of other countries; durations in British notation are no
dates.
"""

from __future__ import annotations

import pytest
from marked import unmark

FOUND = """Seen on {DATE:02FEB1971} in clinic.
Admitted {DATE:03MAR2021}, discharged {DATE:05-MAR-21}.
就诊日期 {DATE:2019年3月4日} 复查。
Patient was born {DATE:1962} in {CITY:Leeds}.
YOB: {DATE:1971}
UR {MRN:123456} seen in clinic.
NI number {SSN:QQ 12 34 56 C} on file.
National Insurance no. {SSN:JK 98 76 54 D}
NHS number {HEALTH_PLAN:943 476 5919} confirmed.
Medicare no. {HEALTH_PLAN:2123 45670 1}
NHI {HEALTH_PLAN:ZAC5361} registered.
PPS number {SSN:1234567FA}
NRIC {SSN:S1234567D}
Pacemaker serial {DEVICE:PJN456789} interrogated.
Lens implant SN {DEVICE:12345678.012}
Written by {ID:@janeqpublic} yesterday.
Application no. {ID:36244/06} was lodged.
Docket {ID:CV-2019-001234} filed.
Fiscal code {SSN:RSSMRA80A01H501U} recorded.
CPF {SSN:123.456.789-09} on file.
Heard by the {HOSPITAL:Kadıköy District Court} on {DATE:12 March 1999}.""".splitlines()
NOTHING = """Review in 1/52. Off work 3/7. Repeat bloods in 2/12.
Cough for 3/52, rash 2/7, pain 6/12 on and off.
On 3/7 course of abx, seen 2/52 ago, since 2/52, until 6/52.
Strength 4/5 and 3/4. BP 120/80. Murmur 2/6 at the apex.
Metoprolol @ 5 mg daily, HR 80 @rest.
Serial troponins 0.04 and 0.05. Serial 7s normal.""".splitlines()


@pytest.mark.parametrize("line", FOUND)
def test_formats_of_other_countries(finder, line):
    text, truth = unmark(line)
    covered = {i for span in finder.find(text) for i in range(span.start, span.end)}
    for start, end, _ in truth:
        assert {i for i in range(start, end) if text[i].isalnum()} <= covered


@pytest.mark.parametrize("line", NOTHING)
def test_what_only_looks_like_them(finder, line):
    assert finder.find(line) == []


def test_a_line_of_a_million_characters(finder):
    text = "Seen by Dr. Ruth Okafor on 3/4/2019 with gout, stable. " * (10**6 // 54)
    assert len(finder.find(text)) >= 2 * 10**6 // 55


def test_names_of_organisations_end_at_a_line_break(finder):
    text = "seen August 11, 2012\n\nDr. Anna Thomas\nWalnut Street Family Practice\n"
    text += "University Hospital of Oshkosh\nDepartment of Cardiology"
    spans = [text[span.start : span.end] for span in finder.find(text)]
    assert {
        "August 11, 2012",
        "Walnut Street Family Practice",
        "University Hospital of Oshkosh",
    } <= set(spans)
