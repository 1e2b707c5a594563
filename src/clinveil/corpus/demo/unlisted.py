"""Replace names with invented ones that are in no name list; equal words get equal replacements."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b

from clinveil.corpus.demo.persons import uniforms
from clinveil.corpus.people import Patient
from clinveil.lexicons.names import name_form
from clinveil.lexicons.unlisted import unlisted_name

STREAM = 2  # other streams are for clinicians and patients
_WORD = re.compile(r"[^\W\d_]{2,}")


@lru_cache(maxsize=1 << 16)
def renamed(seed: int, word: str) -> str:
    """Return the replacement of a name's word in the corpus of a seed."""
    form = blake2b((name_form(word) or word).encode(), digest_size=8).digest()
    draw = uniforms(seed, STREAM, int.from_bytes(form))
    return unlisted_name(lambda n: int(draw() * n))


def unlisted_text(seed: int, text: str) -> str:
    """Return a name with its words replaced; single initials, hyphens and case are kept."""
    return _WORD.sub(lambda match: _in_case(match[0], renamed(seed, match[0])), text)


def unlisted_address(seed: int, address: str) -> str:
    """Return an e-mail address with names in the mailbox replaced; the domain is kept."""
    mailbox, _, domain = address.partition("@")
    return f"{unlisted_text(seed, mailbox)}@{domain}"


def unlisted_patient(seed: int, patient: Patient) -> Patient:
    """Return the known-patient record that matches such notes."""
    return replace(
        patient,
        name=tuple(unlisted_text(seed, token) for token in patient.name),
        emails=tuple(unlisted_address(seed, address) for address in patient.emails),
    )


def _in_case(like: str, name: str) -> str:
    return name.lower() if like.islower() else name
