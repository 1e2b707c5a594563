"""Addresses outside the United States: further forms of streets, and the towns and postal codes
after a street.

Formats: Universal Postal Union, "Postal addressing systems in member countries".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from clinveil.lexicons import LexicalClass, lexical_classes, word_list
from clinveil.phi.detection.detector import CODE_BEGIN, CODE_END, Rule, words
from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching.matcher import FAR, Anchor

_CAP = r"(?:St\.|[A-Z\xc0-\xde](?:\.|[\w']*))(?:-[A-Z\xc0-\xde]\w*)?"
_TOWN = r"[A-Z\xc0-\xde][a-z\xdf-\xff][\w']*"
_OF = (
    r"(?:(?:de|du|des|della|dello|delle|del|dei|di|da|do|dos|das|la|las|los|le|les|el|sur)\s"
    r"|d'|l'){0,2}"
)
_END = rf"(?<!\.)(?![\xc0-\xff%])(?![./-]\d){CODE_END}"
_SMALL = words(
    "Phone Tel Telephone Mobile Fax Email Dob Date Age Patient Mother Father Carers Lives Next Ward"
    " Bed Dr Mr Re"
)
_TAIL = re.compile(
    rf"\s?(?:,\s|,|\s-\s|\s|\n(?=[^\n]{{0,30}}\d{{4}}))(?:(?P<zip>S?\(?\d{{6}}\)?|\d{{3}}\s\d{{3}}"
    rf"|\d{{4,5}}(?:-\d{{3,4}})?|[A-Z]{{1,2}}\d[A-Z\d]?\s?\d[A-Z]{{2}}|[A-Z]\d[A-Z]\s?\d[A-Z]\d"
    rf"|[A-Z]\d[\dW]\s?[A-Z\d]{{4}})(?![\w%/]|[.,]\d)|(?P<flat>#\d{{1,2}}-\d{{1,4}}"
    rf"|\d{{1,2}}[oaº]\s?[A-Z]?\b"
    rf"|km\s\d{{1,4}}|\d{{1,4}}[a-z]?(?=,)|(?i:apto|apt|flat|unit|floor|bloco"
    rf"|piso)\.?\s\d{{1,4}}[A-Z]?)(?!\w)"
    rf"|(?P<state>[A-Z]{{2,3}}|Ontario|CEP)(?=[\s,]\s?[A-Z]?\d)|(?P<town>(?:Co\.?\s|The\s"
    rf"|St\.?\s)?{_TOWN}(?:[\s-](?:(?:de|do|of|on|upon|am|an|la|le"
    rf"|sur)[\s-])?{_TOWN}){{0,2}}(?:\s\d{{1,2}}(?!"
    rf"[\w./%]))?))"
)


def tail(note: NoteView, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield the towns, postal codes and flats after a street that ends at an offset of the plain
    copy.
    """
    after_code = False
    # The full stop of an abbreviation: `44 River Rd. Leeds LS1 4AP`.
    dotted = note.plain[end : end + 2] == ". "
    while match := _TAIL.match(note.plain, end + dotted):
        if town := match["town"]:
            comma = "," in note.plain[end : match.start("town")]
            first = re.split(r"[\s-]", town.removeprefix("The "))[0]
            before_code = re.match(
                r",?\s(?:[A-Z]{2,3}\s)?(?:[A-Z]?\d|[A-Z]{2}\d[A-Z\d]?\s\d[A-Z]{2})",
                note.plain[match.end() : match.end() + 14],
            )
            if (
                first in _SMALL
                or not (comma or before_code or after_code)
                or (_is_word(first) and first == town)
            ):
                return
        kind = match.lastgroup or ""
        if dotted and kind != "town":
            return
        dotted = False
        if kind != "state":
            yield *match.span(kind), {"zip": "ZIP", "town": "CITY"}.get(kind, "ADDRESS")
        end = match.end()
        after_code = kind == "zip"


def _is_word(word: str) -> bool:
    """Whether a word is an English word and no town."""
    return word.lower() in word_list("function") or (
        bool(lexical_classes(word) & LexicalClass.WORD)
        and not lexical_classes(word) & LexicalClass.NAME
        and word not in word_list("cities")
    )


_KIND = (
    r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Close|Drive|Way|Place|Crescent|Terrace|Court|Green"
    r"|Hill|Row|Square)"
)
_HOUSE = (
    r"(?:Cottage|Rectory|House|Lodge|Farm|Barn|Villa|Vicarage|Apartments|Mansions|Moorings|Towers"
    r"|Mill)"
)


def _rule(pattern: str, example: str, score: float = 0.8, anchor: Anchor | None = None) -> Rule:
    return Rule(
        "ADDRESS",
        re.compile(rf"{CODE_BEGIN}(?<!\d[.,/-])(?P<phi>{pattern}){_END}"),
        example,
        score=score,
        anchor=anchor,
    )


RULES = (
    _rule(
        rf"\d{{1,4}}[a-z]?(?:/\d{{1,4}})?,?\s(?:{_CAP}\s){{1,3}}(?:Park|Pde|Cct|Tce|Gdns|Nagar"
        rf"|Marg|Vihar|Colony|Layout"
        r"|Enclave|Chowk|Bagh|Gali|Esplanade|Strand)",
        "Of {9 Manuka Tce}, and of {27/3 Anna Nagar}.",
        anchor=Anchor(
            "*Bagh* *Cct* *Chowk* *Colony* *Enclave* *Esplanade* *Gali* *Gdns* *Layout*"
            " *Marg* *Nagar* *Park* *Pde* *Strand* *Tce* *Vihar*",
            within=FAR,
            first=r"\d",
            after="[^A-Za-z]",
        ),
    ),
    _rule(
        rf"(?:(?:Unit|Flat)\s)?\d{{1,3}}/\d{{1,4}}[a-z]?\s(?:{_CAP}\s){{1,3}}(?:{_KIND}|Parade"
        rf"|Circuit)",
        "At {3/27 Banksia Avenue}.",
        anchor=Anchor(signs="/", within=8, first=r"[\dFU]", after="[^A-Za-z]"),
    ),
    _rule(
        rf"\d{{1,4}}[a-z]\s(?:{_CAP}\s){{1,3}}{_KIND}",
        "At {112b Gloucester Rd}.",
        anchor=Anchor(digits=1, after="[^A-Za-z]"),
    ),
    _rule(
        rf"(?:\d{{1,4}}\s|[A-Z]-\d{{1,3}},?\s)(?:The\sEsplanade|Esplanade|(?:Jalan|Jln|Lorong"
        rf"|Sector)\s(?:{_CAP}|\d{{1,3}})"
        rf"(?:\s{_CAP})?)",
        "Of {5 Jalan Besar}, or {B-12, Sector 62}.",
        anchor=Anchor(
            "*Esplanade* *Jalan *Jln *Lorong *Sector",
            within=11,
            first=r"[A-Z\d]",
            after="[^A-Za-z]",
        ),
    ),
    _rule(
        rf"(?:Blk|Plot|H\.\s?No\.?|House\sNo\.?|Door\sNo\.?"
        rf"|Block(?=[^\n]{{5,40}}#\d))\s?[\d/-]+[A-Z]?"
        rf"(?:,?\s{_CAP}){{0,4}}(?:\s\d{{1,3}})?",
        "Of {Blk 112 Toa Payoh Lorong 1}.",
        anchor=Anchor(
            "*Blk* *Block* *Door *House *No* *Plot*", within=3, first="[BDHP]", after="[^A-Za-z]"
        ),
    ),
    _rule(
        rf"(?:(?:Am|Im|An\sder|Auf\sder|In\sder|Unter\sden|Zum|Zur)\s(?:{_CAP}\s){{1,2}}"
        rf"|[A-Z\xc0-\xde]\w+(?:straße|strasse|str\.|weg|platz|allee|gasse|damm"
        rf"|ufer)\s)\d{{1,4}}\s?[a-z]?",
        "Wohnt {Am Alten Markt 3}, früher {Lindenstraße 14}.",
        anchor=Anchor(
            "*Am* *An *Auf *Im* *In *Unter *Zum* *Zur* *allee* *damm* *gasse* *platz*"
            " *strasse* *stra *str *ufer* *weg*",
            within=FAR,
            first="[A-Z]",
            after="[^A-Za-z]",
        ),
    ),
    _rule(
        r"(?:\d{1,4}(?:\s?(?:bis|ter))?,?\s+)(?:rue|avenue|av\.|boulevard|bd|blvd|chemin|impasse"
        r"|quai|place|all[ée]e"
        rf"|square|cours|route|passage|villa)\s+{_OF}{_CAP}(?:[\s-](?:de\s|des\s"
        rf"|du\s)?{_CAP}){{0,3}}",
        "Lives at {27 place de la République}.",
        anchor=Anchor(digits=1, after="[^A-Za-z]"),
    ),
    _rule(
        r"(?:Vicolo|Largo|Strada|Via|Viale|Piazza|Corso|Contrada|Av\.|Avda\.?|Avenida|Travessa"
        r"|Alameda|Praça|Praca|Rodovia"
        rf"|Estrada|Rua|R\.|Ronda|Camino|Plaza|Carrer|Calle|C/)\s{_OF}{_CAP}(?:\s(?:de\s|da\s|do\s"
        rf"|dos\s)?{_CAP})"
        r"{0,3}(?:-\d+)?,?\s(?:n[o.]{0,2}\s?|km\s)?\d{1,4}[a-z]?",
        "Lives at {Alameda Santos 88} or {Av. Paulista, 1578}.",
        anchor=Anchor(
            "*Alameda* *Avda* *Avenida* *Av *Calle* *Camino* *Carrer* *Contrada* *Corso*"
            " *C *Estrada* *Largo* *Piazza* *Plaza* *Praca* *Pra *Rodovia* *Ronda* *Rua*"
            " *R *Strada* *Travessa* *Via* *Vicolo*"
        ),
    ),
    _rule(
        rf"(?:The\s)?(?:{_TOWN}\s){{1,2}}{_HOUSE},\s(?:{_CAP}\s){{1,2}}{_KIND}",
        "of {Rose Cottage, Back Street}.",
        0.7,
        anchor=Anchor(
            "*Apartments *Barn *Cottage *Farm *House *Lodge *Mansions *Mill *Moorings"
            " *Rectory *Towers *Vicarage *Villa",
            within=FAR,
            first="[A-Z]",
            after="[^A-Za-z]",
        ),
    ),
    _rule(
        r"(?:RD|RR|R\.R\.)\s\d{1,2}(?=,\s[A-Z]\w+,?\s(?:[A-Z]{2}\s|\d{4}))",
        "Of {RD 2}, Whangarei 0172.",
        anchor=Anchor("*RD* *RR* R", within=2, first="[R]", after="[^A-Za-z]"),
    ),
    Rule(
        "CITY",
        re.compile(rf"(?<![\w.-])(?P<phi>{_TOWN}(?:\s{_TOWN})?,\sCo\.?\s{_TOWN})(?!\w)"),
        "Lives in {Ballymore, Co. Kildare}.",
        score=0.8,
        anchor=Anchor("Co*", within=FAR, first="[A-Z]", after=r"[^\w.-]"),
    ),
)
