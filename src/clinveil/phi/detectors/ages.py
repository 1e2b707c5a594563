"""Ages over 89, in figures and in words; younger ages may stay (45 CFR 164.514(b)(2)(i)(C)).

A year of birth before 1940 counts as one, because no one can say that it is younger.
"""

from __future__ import annotations

import re
from functools import partial

from clinveil.phi.detector import Rule, RuleDetector, before, detectors
from clinveil.phi.note import NoteView

_OLD = r"(?:9\d|1[0-2]\d)"
_UNIT = r"(?:[\s-]*(?:year|yr)s?[\s-]*(?:old|of age)\b|[\s-]*y\.?/?o\b|[\s-]*y/o\b)"
_UNITS_WORD = "(?:one|two|three|four|five|six|seven|eight|nine)"
_WORDS = rf"(?:ninety(?:[\s-]*{_UNITS_WORD})?|(?:one|a) hundred(?:(?:\s+and)?\s+{_UNITS_WORD})?)"
_TEMPERATURE = re.compile(r"temp|fever|febrile|\bt[:\s]|max|spo2|sat|degree|[°.]")


def _no_temperature(match: re.Match[str], note: NoteView) -> bool:
    return not _TEMPERATURE.search(before(match, note, 25))


_rule = partial(Rule.any_case, "AGE")
RULES = (
    _rule(rf"(?<![\d/.-])(?P<phi>{_OLD}){_UNIT}", "A {97}-year-old female, once {94} yo."),
    _rule(
        rf"\b(?:age|aged|age of|age is|turned|turning)\s*[:=]?\s*(?P<phi>{_OLD})(?![\d/%-]|\.\d|\s*(?:mg|ml|%|months))",
        "Aged {92}. She turned {100}.",
    ),
    _rule(
        r"\b(?:in|of)\s+(?:her|his|their|the)?\s*(?:early|mid|late)?[\s-]*(?P<phi>9\d'?s|nineties|1[0-2]0'?s)\b",
        "She is in her {90s}.",
    ),
    _rule(rf"(?<![\d/.-])(?P<phi>{_OLD})(?=[MF]\b(?![/-]))", "A {91}F with cough.", check=_no_temperature),
    _rule(rf"\b(?P<phi>{_WORDS})(?=[\s-]*(?:year|yr)s?[\s-]*(?:old|of age))", "A {ninety-three} year old man."),
    _rule(
        rf"\b(?:age|aged|is|was|turned|turning|at|just)\s+(?P<phi>ninety[\s-]+{_UNITS_WORD})\b", "He is {ninety-three}."
    ),
    _rule(r"\b(?P<phi>nonagenarian|centenarian)\b", "A {nonagenarian} in good health."),
    _rule(
        r"\b(?:dob|d\.o\.b\.?|date of birth|birth\s?date|born(?:\s+on)?)[\s:]*(?:is\s+)?"
        r"(?P<phi>(?:\d{1,2}[/.-]\d{1,2}[/.-]|[a-z]{3,9}\.?\s+\d{1,2},?\s+|\d{1,2}\s+[a-z]{3,9}\.?\s+)(?:18\d\d"
        r"|19[0-3]\d)"
        r"|(?:18\d\d|19[0-3]\d)[/-]?\d\d[/-]?\d\d)(?!\d)",
        "DOB: {03/04/1921}",
        score=0.95,
    ),
    _rule(r"\bborn\s+(?:in\s+)?(?:the\s+year\s+)?(?P<phi>(?:18\d\d|19[0-3]\d))(?![\d/-])", "Born in {1925} in Canada."),
)

detectors.register("ages")(RuleDetector("ages", RULES))
