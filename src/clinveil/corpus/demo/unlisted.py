"""Notes whose names stand in no list of ours: each word of a name becomes syllables, the same wherever it stands."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b

from clinveil.corpus.demo.persons import uniforms
from clinveil.corpus.people import Patient
from clinveil.lexicons.names import name_form
from clinveil.lexicons.unlisted import unlisted_name

STREAM = 2  # beside those of clinicians and of patients
_WORD = re.compile(r"[^\W\d_]{2,}")


@lru_cache(maxsize=1 << 16)
def renamed(seed: int, word: str) -> str:
    """The name that a word of a name becomes in the corpus of a seed."""
    form = blake2b((name_form(word) or word).encode(), digest_size=8).digest()
    draw = uniforms(seed, STREAM, int.from_bytes(form))
    return unlisted_name(lambda n: int(draw() * n))


def unlisted_text(seed: int, text: str) -> str:
    """A name with other words; lone initials, hyphens and letter case stay."""
    return _WORD.sub(lambda match: _in_case(match[0], renamed(seed, match[0])), text)


def unlisted_address(seed: int, address: str) -> str:
    """An e-mail address whose mailbox has other names; its domain stays."""
    mailbox, _, domain = address.partition("@")
    return f"{unlisted_text(seed, mailbox)}@{domain}"


def unlisted_patient(seed: int, patient: Patient) -> Patient:
    """What the feed says of a patient of such notes."""
    return replace(
        patient,
        name=tuple(unlisted_text(seed, token) for token in patient.name),
        emails=tuple(unlisted_address(seed, address) for address in patient.emails),
    )


def _in_case(like: str, name: str) -> str:
    return name.lower() if like.islower() else name
