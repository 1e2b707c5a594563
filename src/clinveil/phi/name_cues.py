"""What stands beside a name: titles, field headers, relatives, credentials, verbs of saying.

Each cue says where a name would begin; `names.py` decides how far it goes and whether it is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple


class Trust(Enum):
    """How much a cue says about the word it points at."""

    TITLE = 3  # anything capitalised is a name, and a known name even in lower case
    FIELD = 2  # a known name or an unknown word, not an ordinary word alone
    KIN = 1  # the same, but an unknown word needs small letters after its capital
    HINT = 0  # a known name


class Cue(NamedTuple):
    """The start of a possible name in the plain copy."""

    start: int
    trust: Trust


_I = re.IGNORECASE
_TITLE = re.compile(
    r"(?<![A-Za-z])(?:Drs?|Mrs?|Ms|Mx|Miss|Messrs|Prof|Professor|Rev|Reverend|Fr|Rabbi|Pastor|Sgt|Capt|Lt|Col|Maj|Judge"
    r"|Hon|Sr\.|Sister|Nurse|Doctor|Mister|Missus|Madam|Sir|Lady|Señora?|Sra?|Mme|Herr|Frau)\b\.?\s*,?\s*(?=[^\W\d_])",
    _I,
)
_GLUED = re.compile(r"(?<![A-Za-z])(?:Drs?|Mrs?|Ms|pt)\.?(?=[A-Z][a-z]+)")
_ALSO_WORDS = ("sister", "nurse", "doctor", "judge", "lady", "sir", "miss", "fr", "col", "pastor", "sr.", "hon", "lt", "maj", "prof")
_FIELD = re.compile(
    r"(?:^|[\n;,.|]|\s{2,})[ \t]*(?:RE|patient(?:'?s)?(?:\s+name)?|(?:full|first|last|middle|given|family|legal|preferred|maiden)\s+name|name"
    r"|(?:pt|client|resident|guarantor|subscriber|member|provider|physician|doctor|nurse|surgeon|mother|father|spouse)(?:'?s)?\s+name|pt"
    r"|client|(?:attending|referring|primary(?:\s+care)?|family|consulting|requesting|ordering|admitting|treating|covering)"
    r"(?:\s+(?:physician|doctor|provider|surgeon|md))?|(?:first|second|co|assistant)?[- ]?(?:surgeon|assistant)s?(?:\s+surgeon)?"
    r"|anesthesiologist|anesthetist|pathologist|radiologist|cardiologist|consultant|resident|intern|pcp|provider|physician|therapist"
    r"|nurse|author|scribe|transcriptionist|proctor|witness(?:ed by)?|dictated by|dictator|signed(?: by)?|electronically signed by"
    r"|reviewed by|prepared by|attested by|transcribed by|verified by|approved by|cosigned by|seen by|cc|attn|attention"
    r"|emergency contact|next of kin|guarantor|contact|informant|interpreter|caregiver|case manager|social worker)"
    r"\s*[:#]\s*[,]?\s*(?=[^\W\d_])",
    _I,
)
_PEOPLE = (
    r"wife|husband|son|daughter|mother|father|mom|dad|brother|sister|aunt|uncle|cousin|niece|nephew|friend|partner|girlfriend"
    r"|boyfriend|fianc[eé]e?|caregiver|caretaker|grandson|granddaughter|grandmother|grandfather|grandma|grandpa|spouse|roommate"
    r"|neighbou?r|stepson|stepdaughter|stepmother|stepfather|twin|sibling|guardian|sponsor|boss|co-?worker|colleague|attorney|lawyer"
    r"|social worker|therapist|counselor|psychologist|psychiatrist|case manager|nurse practitioner|physician assistant|resident|surgeon"
    r"|interpreter|teacher|pastor|priest|landlord"
)
_WHO = r"patient|pt|male|female|man|woman|boy|girl|child|infant|lady|gentleman|baby|toddler|teenager|veteran|client|individual|mr|m|f"
_RELATIVE = re.compile(rf"\b(?:{_PEOPLE})s?(?:\s+is|\s+was|'s\s+name\s+is)?(?:\s+(?:named|called))?\s*[,(:]?\s*[\"']?(?=[^\W\d_])", _I)
_PATIENT = re.compile(rf"\b(?:{_WHO})\s*[,(:]?\s+(?=[A-Z])", _I)
_NAMED = re.compile(
    r"\b(?:named|name\s+is|name's|dear|hi|hello|goes\s+by|known\s+as|a\.?k\.?a\.?|nicknamed|n[ée]e)\s+[\"']?(?=[A-Z])", _I
)
# One to four capitalised words, then what only a person does, or an age.
_PERSON = r"(?<![\w-])(?P<name>[A-Z][\w'-]+(?:[ ]+(?:[A-Z]\.|[A-Z][\w'-]+)){0,3})"
_AGED = re.compile(_PERSON + r",?\s+(?:(?:is|was)\s+)?(?:(?:a|an|the)\s+)?\d{1,3}[\s-]*(?:y/?o|year|yr|month|week|day)")
_SUBJECT = re.compile(
    _PERSON + r"\s+(?:states?|stated|reports?|reported|denies|denied|complains?|complained|presents|presented|endorses?|returns|says|said"
    r"|tells|told|feels|admits|notes that|is here|comes in|called|lives|works|who|is\s+(?:an?\s+)?(?:very\s+)?(?:pleasant|delightful|lovely))\b"
)
_KIN = re.compile(rf"(?<![\w-])(?P<name>[A-Z][\w'-]+(?:\s+[A-Z][\w'-]+)?),\s+(?:(?:her|his|their|my|the)\s+)?(?:patient'?s?\s+)?(?:{_PEOPLE})\b")
CREDENTIAL = re.compile(
    r"(?<=[\w.])(?:,\s*|\s+)(?:M\.\s?D\.|MD|D\.\s?O\.|DO|R\.N\.|RN|N\.P\.|NP|FNP|ARNP|CRNP|CNM|P\.A\.|PA-C|PA|Ph\.?\s?D\.?|PsyD|LPN|CRNA|DPM"
    r"|DDS|DMD|PharmD|RPh|MSW|LCSW|LICSW|FACS|FACC|FACP|MBBS|OTR|PT|DPT|Esq)(?![\w-])"
)


def cues(text: str) -> Iterator[Cue]:
    """Where names may begin, by what stands before or after them; in no particular order, several at one place."""
    for match in _TITLE.finditer(text):
        weak = match[0].strip().lower().startswith(_ALSO_WORDS)
        yield Cue(match.end(), Trust.FIELD if weak else Trust.TITLE)
    for pattern, trust in _BEFORE:
        yield from (Cue(match.end(), trust) for match in pattern.finditer(text))
    for pattern, trust in _AFTER:
        yield from (Cue(match.start("name"), trust) for match in pattern.finditer(text))


_BEFORE = (
    (_GLUED, Trust.TITLE), (_FIELD, Trust.FIELD), (_NAMED, Trust.FIELD), (_RELATIVE, Trust.KIN), (_PATIENT, Trust.HINT),
)  # fmt: skip
_AFTER = ((_AGED, Trust.KIN), (_SUBJECT, Trust.HINT), (_KIN, Trust.KIN))
