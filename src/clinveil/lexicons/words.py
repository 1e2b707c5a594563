"""Word lists, most of them written for clinveil: common and clinical words, eponyms and their
nouns, places.

The first line of each file in `data/` states its source. The rest are words separated by white
space, with `_` for a space inside an entry. The lists contain base forms; `is_word` handles the
usual endings.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files

# Suffixes (longest first) with the endings that may replace them to give a stem.
_ENDINGS = (
    ("iness", ("y",)), ("ingly", ("", "e")), ("fully", ("", "ful")), ("ility", ("le", "il")),
    ("ally", ("", "al")), ("ness", ("",)), ("less", ("",)), ("ment", ("", "e")), ("ings", ("",
        "e")), ("iest", ("y",)), ("ying", ("ie",)),
    ("ing", ("", "e")), ("ies", ("y",)), ("ied", ("y",)), ("ier", ("y",)), ("ily", ("y",)), ("est",
        ("", "e")),
    ("ers", ("", "e")), ("ful", ("",)), ("ish", ("",)), ("ist", ("", "y")), ("ed", ("", "e")),
    ("es", ("",)), ("er", ("", "e")), ("ly", ("", "le")), ("or", ("", "e")), ("al", ("", "e")),
    ("en", ("", "e")), ("s", ("",)), ("y", ("", "e")), ("d", ("",)),
)  # fmt: skip
_ENDINGS_BY_LETTER = {
    letter: [row for row in _ENDINGS if row[0][-1] == letter]
    for letter in {ending[-1] for ending, _ in _ENDINGS}
}
# Suffixes that short names also have (Nagy is not "naggy"): they apply only to longer stems.
_OF_NAMES = frozenset(("al", "or", "en", "y", "er", "ers", "ish", "ist", "est"))
_BEFORE_ES = ("s", "x", "z", "ch", "sh", "o")  # boxes, but not "huhes"
# Stems of international nonproprietary names (WHO) that hardly any surname ends with.
_STEMS_OF_MEDICINES = (
    "coxib|opram|oxetine|c[iy]clovir|tinib|rafenib|metinib|lisib|ciclib|parib|gliptin|gliflozin"
    "|glutide|glitazone|glinide|lukast|setron|dron(?:ate|ic)|fibrate|xaban|gatran|pril|azepam"
    "|azolam|barbital|bactam|cycline|floxacin|thromycin|conazole|curonium|curium|profen|fenac"
    "|oxicam|semide|thiazide|tidine|zosin|terol|tropium|nisolone|cinolone|metasone|sonide|gestrel"
    "|gesterone|sterone|ximab|zumab|umab|tocept|poetin|platin|rubicin|taxel|tecan|mustine|trexate"
    "|quine|zolamide|amivir|gravir|navir|buvir|asvir|previr|racetam|gabalin|bamate|peridone|apine"
    "|piprazole|triptyline|ipramine|faxine|morphine|fentanil|codone|morphone|tadine|domide"
    "|limus|stigmine|phylline|vaptan|entan|penem|relix|oxane|zepine|dralazine|formin|thyronine"
)
# Endings typical of medical and scholarly words and rare in names.
_LEARNED = re.compile(
    r".{2,}(?:itis|osis|emia|uria|algia|pathy|ectomy|otomy|ostomy|oscopy|plasty|graphy|ology"
    r"|ologist|ogram|trophy"
    r"|plasia"
    r"|megaly|rrhea|rrhage|stasis|genic|lysis|tion|tions|sion|sions|icity|ivity|ance|ances|ency"
    r"|ical|ically|aceous|eous"
    r"|ously|ular|oid|oma|omas|cillin|mycin|azole|olol|sartan|statin|prazole|mab|idine|amine|ophen"
    r"|ulate|ating|izing"
    r"|plasties|surgery|surgeries|procedure|procedural|atrial|ventricular|vascular|pidem|oxacin"
    r"|dipine|zepam|triptan"
    r"|ously|ization|ativ\w*|iasis|penia|plegia|paresis|esthesia|centesis|phasia|phagia|rrhaphy"
    r"|tomical|scopic|ometry|odynia|aemia|oedema|rrhoea|phobia"
    rf"|{_STEMS_OF_MEDICINES})"
)


_VOCABULARY = ("common", "clinical", "icd", "usual", "brands", "medicines", "complaints")


@cache
def word_list(name: str) -> frozenset[str]:
    """Return the words of one list: `common`, `clinical`, `shorthand`, `usual`, `brands`,
    `eponyms`, `function`, …
    """
    text = files("clinveil.lexicons").joinpath("data", f"{name}.txt").read_text(encoding="utf-8")
    return frozenset(word.replace("_", " ") for word in text.partition("\n")[2].split())


@cache
def vocabulary() -> frozenset[str]:
    """Return the words of the lists of words, medicines and brands, and Faker's common English
    words.
    """
    from faker.providers.lorem.en_US import Provider

    usual = {word.lower() for word in Provider.word_list if word.islower()}
    return frozenset(usual).union(*map(word_list, _VOCABULARY))


@lru_cache(maxsize=1 << 14)
def is_word(form: str) -> bool:
    """Return whether a lower-case form is a common or clinical word, alone or with a usual
    ending.
    """
    known = vocabulary()
    if form in known or _LEARNED.fullmatch(form):
        return True
    endings = _ENDINGS_BY_LETTER.get(form[-1:], ())
    return any(
        _has_stem(form, ending, repairs, known)
        for ending, repairs in endings
        if form.endswith(ending)
    )


def _has_stem(form: str, ending: str, repairs: tuple[str, ...], known: frozenset[str]) -> bool:
    stem = form[: -len(ending)]
    if len(stem) < 3 or (ending == "es" and not stem.endswith(_BEFORE_ES)):
        return False
    doubled = len(ending) > 1 and stem[-1] == stem[-2] and stem[:-1] in known
    if len(stem) < 4 and ending in _OF_NAMES:
        return doubled
    return doubled or any(stem + repair in known for repair in repairs)
