"""Invented clinicians: a fixed cast for a whole corpus, so that their names stand in many patients' notes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

import numpy as np

from clinveil.corpus.demo import places
from clinveil.corpus.demo.grammar import Draw, Phi, Vocabulary, pick
from clinveil.corpus.demo.language import HABITS, language
from clinveil.corpus.demo.names import Name, ascii_letters, person_name

PER_CLINIC, FAMILY_DOCTORS = 24, 300
FAMILY = ""
MALE = 0.55
BLOCK = 1024


def uniforms(*entropy: int) -> Draw:
    """An endless stream of uniform numbers that depends on the entropy alone, drawn in blocks."""
    rng = np.random.default_rng(np.random.SeedSequence(entropy))
    block: Callable[[], list[float]] = lambda: rng.random(BLOCK).tolist()  # noqa: E731
    return chain.from_iterable(iter(block, None)).__next__


@dataclass(frozen=True)
class Clinician:
    """An invented physician, the habit of writing (`language.HABITS`), and where to reach him or her."""

    name: Name = field(repr=False)
    habit: str
    fields: Vocabulary = field(repr=False)


@lru_cache(maxsize=8)
def clinicians(seed: int) -> dict[str, tuple[Clinician, ...]]:
    """The clinicians of a demo corpus by clinic; `FAMILY` holds the family doctors."""
    sizes = {FAMILY: FAMILY_DOCTORS} | dict.fromkeys(language().clinics, PER_CLINIC)
    draw = uniforms(seed, 0)
    return {clinic: tuple(_clinician(draw) for _ in range(size)) for clinic, size in sizes.items()}


def _clinician(draw: Draw) -> Clinician:
    name, where = person_name("M" if draw() < MALE else "F", draw), places.town(draw)
    license_number = pick(("MD{}", "{}", "A-{}", "G{}"), draw).format(places.digits(6, draw))
    address = f"{ascii_letters(name.given)[:1]}.{ascii_letters(name.family)}@{places.domain(draw)}"
    fields: Vocabulary = {
        "doc": Phi("NAME", name.full),
        "doc_last": Phi("NAME", name.family),
        "doc_phone": Phi("PHONE", places.telephone(where, draw)),
        "doc_fax": Phi("FAX", places.telephone(where, draw)),
        "doc_email": Phi("EMAIL", address),
        "doc_license": Phi("LICENSE", license_number),
        "hospital": Phi("HOSPITAL", places.named("hospital", where, draw)),
        "practice": Phi("HOSPITAL", places.named("practice", where, draw)),
        "clinic_street": Phi("ADDRESS", places.street_address(draw)),
        "clinic_city": Phi("CITY", where.name),
        "clinic_state": where.state,
        "clinic_zip": Phi("ZIP", places.postal_code(where, draw)),
    }
    return Clinician(name, pick(HABITS, draw), fields)
