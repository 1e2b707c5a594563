"""Every detector finds its own examples next to 30 signs before and 30 after
(`detection/detector.py`).
"""

from __future__ import annotations

import pytest
from marked import unmark

from clinveil.phi import DETECTORS, NoteView

BEFORE = (
    *(" ", "\n", "\t", "\r\n", "\u00a0", "-", " - ", "–", "—", "•", "*", "(", "[", "{", '"', "“"),
    *("/", "|", ":", ";", ",", "."),
    *("=", "<", ">", "#", "_", "~", "'", "\n- "),
)  # fmt: skip
AFTER = (
    *(" ", "\n", "\t", "\r\n", "\u00a0", "-", " - ", "–", "—", "•", "*", ")", "]", "}", '"', "”"),
    *("/", "|", ":", ";", ",", "."),
    *("=", "<", ">", "!", "?", "_", "'", "\n- "),
)  # fmt: skip
# Only for identifiers that are found without any context and have no letters.
WORDS_BEFORE = ("Tel.", "Phone-", "data", "Stable.", "x) ", "seen-")
WORDS_AFTER = ("home", ".Then", "-then", "/then")
NAMES = ("dates", "phones", "record_numbers", "ages", "emails_urls", "biometrics", "addresses")
BY_NAME = {detector.name: detector for detector in DETECTORS}
# Parts of a longer sign, or of another rule.
EXEMPT = {
    "RD 2": "needs the comma and town of its line",
    "'98": "a quotation mark before or after it closes a quotation",
    "C:\\Users\\jsmith\\scan.pdf": "a path",
    "\\\\srv\\jsmith": "a path",
}
# The town after a postal code is found by its spelling next to the code.
PLACES = ("CITY", "HOSPITAL", "NAME")


def examples():
    for name in NAMES:
        detector = BY_NAME[name]
        for number, example in enumerate(detector.examples):
            text, truth = unmark(example)
            for start, end, label in truth:
                near = text[start - 1 : start] if start else ""
                if (
                    label in PLACES
                    or text[start:end] in EXEMPT
                    or near.isalnum()
                    or text[end : end + 1].isalnum()
                ):
                    continue
                if near == "/" or text[end : end + 1] == "/":
                    continue
                yield pytest.param(detector, text, start, end, id=f"{name}-{number}-{start}")


def is_found(detector, text, start, end):
    covered = {i for span in detector.find(NoteView(text)) for i in range(span.start, span.end)}
    return all(i in covered for i in range(start, end) if text[i].isalnum())


def missed(detector, text, start, end, pairs):
    identifier = text[start:end]
    for before, after in pairs:
        if detector.name == "ages" and before in ("<", ">"):  # over 89, not an age
            continue
        changed = text[:start] + before + identifier + after + text[end:]
        if not is_found(
            detector, changed, start + len(before), start + len(before) + len(identifier)
        ):
            yield before, after


def words_fit(detector, text, start, end):
    identifier = text[start:end]
    return not any(c.isalpha() for c in identifier) and is_found(
        detector, identifier, 0, len(identifier)
    )


EXAMPLES = list(examples())


@pytest.mark.parametrize(("detector", "text", "start", "end"), EXAMPLES)
def test_an_example_is_found_next_to_each_border(detector, text, start, end):
    pairs = [(before, AFTER[(7 * n + start) % len(AFTER)]) for n, before in enumerate(BEFORE)]
    pairs += [(BEFORE[(11 * n + start) % len(BEFORE)], after) for n, after in enumerate(AFTER)]
    if words_fit(detector, text, start, end):
        pairs += [(before, " ") for before in WORDS_BEFORE] + [
            (" ", after) for after in WORDS_AFTER
        ]
    assert list(missed(detector, text, start, end, pairs)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("detector", "text", "start", "end"), EXAMPLES)
def test_an_example_is_found_between_each_pair_of_borders(detector, text, start, end):
    words = words_fit(detector, text, start, end)
    before, after = (BEFORE + WORDS_BEFORE, AFTER + WORDS_AFTER) if words else (BEFORE, AFTER)
    pairs = ((first, last) for first in before for last in after)
    assert list(missed(detector, text, start, end, pairs)) == []


# What a number can be part of without being an identifier.
NOT_IDENTIFIERS = """
WBC 10.45, INR 2.5-3.5, Hb 12,345; K 4.1.
Version 1.2.3, section 4.10.2, build 10.4.1.2 of the software.
Ratio 1:3, I:E 1:2.5, C/D .4/.5, dilution 1:128.
BP 120/80, 118/76 and 90/60. Vision 20/40, 6/60. Strength 5/5 and 4/5 strength.
1/2 tablet, 2 1/2 cups, q4/6h, grade 2/6 murmur, apgars 8/9, pain 3/10.
Range 150-400, 3.5-5.1, 70-110 mg/dL. Doses of 500-1000 mg, 10-20 mL.
L4-5, C5-6, T2N1M0, S1-S2, stage 2/4, GCS 11/15, MMSE 28/30.
At 0815 and from 0900-1000 hours, 10:30-11:15.
Gravida 3, para 2-0-1-2. Lymph nodes 4/16 positive. Percocet 5/325, Lotrel 5/10.
""".strip().splitlines()


@pytest.mark.parametrize("line", NOT_IDENTIFIERS)
def test_decimals_ratios_versions_and_ranges_are_no_identifiers(line):
    found = [line[s.start : s.end] for name in NAMES for s in BY_NAME[name].find(NoteView(line))]
    assert found == []
