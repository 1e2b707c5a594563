"""Training texts: templates, carrier sentences and external notes, with names inserted and
labelled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

from clinveil.core import Span
from clinveil.corpus import language, many_notes
from clinveil.lexicons import all_given_names, surnames, word_list
from tagger_training.people import Letters, People, written

NAMES = frozenset(["full", "rev", "last", "first", "short", "any", "caps", "hl7"])
_SLOT = re.compile(r"\{(\w+)\}")
# up to these shares, lines are hosts, templates and prose
_HOSTS = 0.22
_FIELDS = 0.56
_PROSE = 0.8
_UNLISTED_SHARE = {"drug": 0.3, "brand": 0.5}  # of generated product names, which are in no list
_LISTS = {
    "kin": (
        "wife husband son daughter mother father sister brother partner niece nephew friend aunt"
        " spouse grandson"
    ),
    "Kin": (
        "Wife Husband Son Daughter Mother Father Sister Brother Partner Niece Nephew Friend Dtr"
        " Mum Dad"
    ),
    "poss": "her his",
    "Poss": "Her His",
    "pron": "she he",
    "obj": "her him",
    "title": "Mr. Mrs. Ms. Mr. Mrs. Ms. Mr Mrs Ms Miss Dr.",
    "did": (
        "underwent returned presented arrived refused improved walked slept fell coughed vomited"
        " worsened recovered tolerated received declined requested started stopped finished"
        " continued missed needed wanted agreed complained came stayed left died woke ate lost"
        " gained took had was seems looks remains feels understands"
    ),
    "asked": (
        "asked told called paged notified informed met saw thanked consulted visited examined"
        " texted advised "
        "reminded contacted updated reached followed helped"
    ),
    "Asked": (
        "Asked Told Called Paged Notified Informed Met Saw Consulted Visited Examined Texted"
        " Contacted Updated"
    ),
    "letter": "A B C D E F G H J K L M P R S T W",
    "verb": (
        "denies reports endorses describes notes states has had reported denied complained_of"
        " admits_to shows showed developed develops mentions worries_about attributes recalls"
        " tolerates tolerated presents_with presented_with continues_with returns_with woke_with"
        " came_in_with exhibits suffers_from suffered manages controls improved_after"
        " is_bothered_by was_noted_to_have is_scheduled_for was_found_to_have underwent displayed"
        " experienced experiences feels felt gets got noticed notices ranks treats avoids avoided"
        " declined refused requested requests wants wanted"
    ),
    "base": (
        "see need have continue call follow take bring come return require start get go give help"
        " make use plan check obtain order repeat resume stay remain discuss arrange review"
        " increase decrease monitor bathe eat drink walk shower transfer discharge consider recheck"
        " hold try defer schedule contact let ask"
    ),
    "finding": (
        "creatinine sodium potassium hemoglobin hematocrit platelets lactate glucose troponin"
        " bilirubin albumin ferritin weight temperature pressure pulse saturation pain nausea"
        " vomiting fever chills cough dyspnea edema rash weakness numbness tremor gait speech"
        " swallow vision hearing appetite sleep mood anxiety memory orientation breathing"
        " breathlessness wheeze abdomen incision wound ulcer drain line graft fistula stoma"
        " catheter tube dressing bleeding bruising dizziness headache constipation diarrhea urine"
        " output intake stool echo biopsy scan ultrasound film culture cultures labs electrolytes"
        " counts function imaging pathology report request dose level levels therapy recovery"
        " progress symptoms complaint complaints swelling stiffness strength balance hand foot knee"
        " hip shoulder back neck chest leg arm eye ear skin mass nodule lesion murmur rhythm"
        " palpitations fatigue insomnia"
    ),
    "result": (
        "improved worsened rose fell doubled resolved returned is_stable is_normal is_better"
        " is_worse is_high "
        "is_low was_normal was_negative was_positive normalized came_back_normal remains_low"
        " remains_high looks_better "
        "is_pending is_clean is_intact trended_down trended_up has_improved has_not_changed"
        " needs_review"
    ),
    "service": (
        "cardiology nephrology neurology oncology hematology urology surgery orthopedics"
        " psychiatry medicine "
        "pediatrics dermatology endocrinology rheumatology gastroenterology hepatology pulmonology"
        " anesthesia radiology "
        "neurosurgery plastics trauma transplant toxicology geriatrics rehab nutrition pharmacy"
        " podiatry audiology pain "
        "hospice obstetrics gynecology ophthalmology immunology renal cardiac thoracic burns"
    ),
    "thing": (
        "drain staples sutures catheter line tube splint cast packing stent pump pacemaker"
        " port dressing clips "
        "stitches bandage brace collar sling wires pins screws plate rod nail mesh sheath electrode"
        " monitor wick trocar "
        "cannula balloon graft bag vac"
    ),
    "head": (
        "Hosp Ward Unit Bed Room Spec Dept Div Loc Svc Type Site Order Status Lab Sex Age Race"
        " Plan Class Team "
        "Page Visit Acct Serv Wing Bay Clinic Floor Phys Prov Hosp Spec Ward Location Service"
    ),
    "bug": (
        "Candida Klebsiella Proteus Serratia Listeria Salmonella Shigella Citrobacter"
        " Enterobacter Bordetella "
        "Legionella Nocardia Brucella Pasteurella Moraxella Neisseria Giardia Aspergillus"
    ),
    "pill": (
        "Yasmin Yaz Alesse Errin Camila Jolivette Nikki Portia Heather Lutera Sprintec Aviane Apri"
        " Kariva Levora Lessina Microgestin Mircette Natazia Nora-Be Ocella Seasonique Sronyx"
        " Trinessa Velivet Zovia Amethyst Beyaz Cryselle Emoquette Gianvi Junel Larin Loryna"
        " Mono-Linyah Syeda Tarina Vienva Vyfemla Xulane Marlissa Estarylla Daysee"
    ),
    "grade": "I II III IV V A B C D IIa IIb IIIa",
}


@dataclass(frozen=True)
class Labelled:
    """A text with labelled spans. Its repr contains no text."""

    text: str = field(repr=False)
    spans: tuple[Span, ...] = field(default=(), repr=False)


def joined(parts: Sequence[Labelled], between: str) -> Labelled:
    """Join several texts into one."""
    pieces: list[str] = []
    spans: list[Span] = []
    length = 0
    for part in parts:
        spans += (span.with_range(span.start + length, span.end + length) for span in part.spans)
        pieces.append(part.text)
        length += len(part.text) + len(between)
    return Labelled(between.join(pieces), tuple(spans))


def filled(template: str, people: People, rng: Random) -> Labelled:
    """Fill the slots of a template and label its names; `first` and `last` draw separate people."""
    pieces: list[str] = []
    spans: list[Span] = []
    length = end = 0
    for match in _SLOT.finditer(template):
        slot = match[1]
        value = written(people.one(rng), slot, rng) if slot in NAMES else _filler(slot, people, rng)
        pieces += (template[end : match.start()], value)
        start = length + match.start() - end
        length = start + len(value)
        end = match.end()
        if slot in NAMES:
            spans.append(Span(start, length, "NAME"))
    return Labelled("".join([*pieces, template[end:]]), tuple(spans))


def refilled(text: Labelled, people: People, rng: Random) -> Labelled:
    """Replace each name of a text by another in the same format, for augmentation or to remove
    held-out names.
    """
    template = []
    position = 0
    others: list[Span] = []
    for span in text.spans:
        if span.label != "NAME":
            others.append(span)
            continue
        template += [
            _braceless(text.text[position : span.start]),
            _as_slot(_form(text.text[span.start : span.end])),
        ]
        position = span.end
    template.append(_braceless(text.text[position:]))
    return filled("".join(template), people, rng)


def _as_slot(name: str) -> str:
    return "{" + name + "}"


def _braceless(text: str) -> str:
    return text.replace("{", "(").replace("}", ")")


def _form(name: str) -> str:
    if re.fullmatch(r"\S+ \w\.?", name):
        return "short"
    words = name.split()
    if len(words) == 1:
        return (
            "last"
            if name.lower() in surnames() and name.lower() not in all_given_names()
            else "first"
        )
    return "rev" if words[0].endswith(",") else "full"


def in_other_case(text: Labelled, rng: Random) -> Labelled:
    """Return the text unchanged, or the text or only its names in lower or upper case."""
    chance = rng.random()
    if chance < 0.7:
        return text
    change: Callable[[str], str] = str.lower if chance < 0.83 or chance > 0.97 else str.upper
    changed = "".join(piece if len(change(piece)) != 1 else change(piece) for piece in text.text)
    if chance < 0.89:
        return Labelled(changed, text.spans)
    letters = list(text.text)
    for span in text.spans:
        letters[span.start : span.end] = changed[span.start : span.end]
    return Labelled("".join(letters), text.spans)


def templates(name: str) -> list[str]:
    """Return the lines of a template file: `templates`, `prose` or `negatives`."""
    lines = Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line.replace("\\n", "\n") for line in lines if line and not line.startswith("#")]


def invented(
    count: int, people: People, rng: Random, hosts: Sequence[Labelled] = ()
) -> Iterator[Labelled]:
    """Yield short texts of a few lines or sentences: templates with and without names, and `hosts`
    if given.
    """
    positive = templates("templates")
    prose = templates("prose")
    negative = templates("negatives")
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(1, 7)):
            chance = rng.random()
            if hosts and chance < _HOSTS:
                parts.append(rng.choice(hosts))
            else:
                lines = positive if chance < _FIELDS else prose if chance < _PROSE else negative
                parts.append(filled(rng.choice(lines), people, rng))
        yield in_other_case(joined(parts, rng.choice((" ", "\n", "\n", "  ", "\n\n"))), rng)


def demo_texts(patients: int, seed: int, people: People, rng: Random) -> Iterator[Labelled]:
    """Yield notes of the demo generator with other names."""
    for _, notes in many_notes(seed, 0, patients):
        for note in notes:
            spans = tuple(Span(*mark) for mark in note.marks)
            yield in_other_case(refilled(Labelled(note.text, spans), people, rng), rng)


def projected(text: str, people: People, rng: Random) -> Labelled:
    """Insert a name for a person in a sentence. A sentence without a person is returned
    unchanged.
    """
    template = _braceless(text)
    for pattern, slots in rng.sample(_ABOUT, len(_ABOUT)):
        if pattern.search(template) and rng.random() < 0.8:
            slot = rng.choice(slots)
            titled = slot == "last" and pattern.pattern[0] != "(" and rng.random() < 0.3
            put = "{title} {last}" if titled else _as_slot(slot)
            template = pattern.sub(put, template, count=1)
            break
    if rng.random() < 0.4:
        template = _OWNER.sub(
            _as_slot(rng.choice(("last", "last", "first"))) + "'s", template, count=1
        )
    return filled(template, people, rng)


_ABOUT = (
    (re.compile(r"(?<=Dr\. )[A-Z]{1,3}\b(?!\.)|(?<=Mr\. )[A-Z]{1,3}\b|(?<=Mrs\. )[A-Z]{1,3}\b"
    r"|(?<=Ms\. )[A-Z]{1,3}\b"),
     ("last",)),
    (re.compile(r"\b[Tt]he patient\b(?=[ '])"), ("full", "last", "first", "first")),
    (re.compile(r"^(?:She|He)\b(?= )"), ("first", "last", "full")),
    (re.compile(r"^(?:Patient|Pt)\b(?= )"), ("full", "last", "first")),
    (re.compile(r"(?<= )(?:she|he)\b(?= )"), ("last", "last", "first", "full")),
    (re.compile(r"(?<=\b(?:to|by) )(?:her|him)\b(?=[,.;]| (?:to|and|that|for|with|in|on|at"
    r"|about)\b)"),
     ("last", "first")),
    (re.compile(r"(?<=\bwith )(?:her|him)\b(?=[,.;]| (?:to|and|that|for|in|on|at|about)\b)"),
     ("last", "first", "full")),
    (re.compile(r"\b(?:the surgeon|the physician|the doctor|the attending|(?:her"
    r"|his) primary care physician)\b"),
     ("last", "full")),
)  # fmt: skip
_OWNER = re.compile(
    r"\b(?:[Hh]is|[Hh]er|[Tt]he patient's)(?= [a-z]{4,})"
)  # `his creatinine`: `Okafor's creatinine`


def _filler(slot: str, people: People, rng: Random) -> str:
    if slot in _LISTS:
        return rng.choice(_lists()[slot])
    if slot.lower() in _LISTS:
        entry = rng.choice(_lists()[slot.lower()])
        return entry[:1].upper() + entry[1:]
    if slot == "initials":
        return written(people.one(rng), slot, rng)
    if slot == "device":  # a surname as the name of an instrument
        return people.one(rng).family
    if slot in ("number", "phone", "date", "time", "age", "small", "year"):
        return _number(slot, rng)
    word = _word(slot.lower(), rng)
    return (
        word.upper()
        if slot.isupper()
        else word[:1].upper() + word[1:]
        if slot[0].isupper()
        else word
    )


def _number(slot: str, rng: Random) -> str:
    day = rng.randint(1, 28)
    month = rng.randint(1, 12)
    year = rng.randint(1950, 2024)
    hour = rng.randint(0, 23)
    minute = rng.randint(0, 59)
    if slot == "date":
        return rng.choice(
            (
                f"{month}/{day}/{year}",
                f"{year}-{month:02}-{day:02}",
                f"{month}/{day}",
                f"May {day}, {year}",
            )
        )
    return {
        "number": str(rng.randint(10, 9999)),
        "phone": f"{rng.randint(200, 999)}-555-{rng.randint(1000, 9999)}",
        "time": f"{hour:02}:{minute:02}",
        "age": str(rng.randint(18, 89)),
        "small": str(rng.randint(2, 12)),
        "year": str(year),
    }[slot]


def _word(slot: str, rng: Random) -> str:
    if slot in _UNLISTED_SHARE and rng.random() < _UNLISTED_SHARE[slot]:
        return _drug_letters().one(rng).lower()
    if slot == "eponym":
        return rng.choice(_words("eponym")).title()
    if slot == "place":
        return rng.choice(_words("place")).title()
    return rng.choice(_words(slot)).lower()


@cache
def _lists() -> dict[str, list[str]]:
    return {
        slot: [word.replace("_", " ") for word in words.split()] for slot, words in _LISTS.items()
    }


@cache
def _words(slot: str) -> list[str]:
    if slot == "drug":
        return [name.replace("_", " ") for name in sorted(language().doses)]
    if slot == "disease":
        return [d.description for d in language().diagnoses]
    if slot == "clinic":
        return language().clinics
    if slot == "procedure":
        return _PROCEDURES.split("; ")
    lists = {
        "eponym": "eponyms",
        "noun": "eponym_nouns",
        "place": "cities",
        "abbr": "shorthand",
        "brand": "brands",
    }
    return sorted(word_list(lists[slot]))


_PROCEDURES = (
    "colonoscopy; left heart catheterization; appendectomy; knee replacement; lumbar puncture;"
    " chest tube placement; "
    "hip arthroplasty; cataract extraction; cesarean section; bronchoscopy; skin biopsy;"
    " laparoscopic cholecystectomy; "
    "carotid endarterectomy; hernia repair; tonsillectomy; MRI of the brain; CT abdomen; dialysis;"
    " stress test; EGD"
)


@cache
def _drug_letters() -> Letters:
    return Letters(name for name in language().doses if name.isalpha())


def all_texts(sources: Iterable[Iterable[Labelled]], rng: Random) -> list[Labelled]:
    """Return the texts of all sources, shuffled."""
    texts = [text for source in sources for text in source]
    rng.shuffle(texts)
    return texts
