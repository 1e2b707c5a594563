"""Names for names: gender, letter case and shape kept, drawn from the census by frequency.

Each word of a name is replaced by itself, keyed by its name form, so "Smith", "SMITH, JOHN" and "J. Smith" agree
without knowing of one another. Initials agree too: under a patient each initial has one secret new initial, and a name
is drawn among those that begin with it (the idea of Stubbs et al. 2015, who map letters one to one; here the new
initial is drawn by its share in the census and two initials may get the same). Whether a word is a first name or
a surname is read from the lists or the known patient, not from its place, so that every mention gives the same. A lone
initial may by chance stay what it was (to forbid it would tell that no surrogate shares its original's initial).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from clinveil.core.keys import Key, Stream
from clinveil.lexicons.names import (
    all_given_names,
    gender_of,
    given_names,
    name_form,
    surnames,
    world_given,
    world_surnames,
)
from clinveil.phi.detectors.known import name_forms, own_form
from clinveil.phi.detectors.names import PARTICLES

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

# The census writes 0.000 for its 70,000 rarest surnames, which share the 10.9 % that the others leave of its 90.5 %.
_RAREST = 0.00015
Role = Literal["family", "female", "male", "given"]
_PIECE = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_POSSESSIVE = re.compile(r"'[sS]$")


class NameSurrogates:
    """The surrogates of the names in one patient's notes."""

    def __init__(self, key: Key, patient_id: str, patient: Patient | None = None) -> None:
        self._key, self._patient_id = key, patient_id
        self._name = patient.name if patient else ()
        self._own = name_forms(self._name)

    def of(self, original: str) -> str:
        """The name in which every word is replaced; what lies between words stays, particles go with their word."""
        pieces = list(_PIECE.finditer(original))
        kept = [p for i, p in enumerate(pieces) if not _is_particle(p[0], is_last=i == len(pieces) - 1)]
        out, position = [], 0
        for piece in pieces:
            if piece not in kept:
                out.append(original[position : piece.start()])
                position = piece.end() + len(re.match(r"[\s-]*", original[piece.end() :])[0])  # type: ignore[index]
                continue
            out += [original[position : piece.start()], self._word(piece[0])]
            position = piece.end()
        return "".join([*out, original[position:]])

    def _word(self, word: str) -> str:
        stem = _POSSESSIVE.sub("", word)
        form = own_form(stem, self._own) or name_form(stem)
        role = self._role(form)
        first = self._initial(form, role)
        if len(form) == 1:
            return _in_case_of(stem, first)
        stream = self._key.stream("surrogate-name", self._patient_id, role, form)
        drawn = _pool(role, first).draw(stream, form) or _pool(role, "").draw(stream, form)
        return _in_case_of(stem, drawn or "") + word[len(stem) :]

    def _role(self, form: str) -> Role:
        tokens = [name_form(token) for token in self._name]
        if form in tokens:
            return "family" if form == tokens[-1] and len(tokens) > 1 else _gendered(form)
        if len(form) == 1:
            return "given"
        given, family = all_given_names().get(form, 0.0), surnames().get(form, 0.0)
        if given == family == 0.0:
            return "given" if form in world_given() and form not in world_surnames() else "family"
        return _gendered(form) if given > family else "family"

    def _initial(self, form: str, role: Role) -> str:
        """The secret new initial; first names share one map whatever their gender."""
        kind: Role = "family" if role == "family" else "given"
        letter = form[:1]
        stream = self._key.stream("surrogate-initial", self._patient_id, kind, letter)
        return (_pool(kind, "").draw(stream, "") or letter)[0]


def _is_particle(word: str, *, is_last: bool) -> bool:
    return not is_last and word.lower() in PARTICLES


def _gendered(form: str) -> Role:
    return gender_of(form) or "given"


def _in_case_of(original: str, drawn: str) -> str:
    if original.isupper() and (len(original) > 1 or len(drawn) == 1):
        return drawn.upper()
    return drawn if original.islower() else drawn.capitalize()


class _Pool:
    """Names with their shares, in alphabetical order."""

    def __init__(self, shares: dict[str, float]) -> None:
        self._names = sorted(shares)
        self._index = {name: i for i, name in enumerate(self._names)}
        self._ends = list(accumulate(shares[name] for name in self._names))

    def draw(self, stream: Stream, original: str) -> str | None:
        """A name by its share among all but the original; None if there is no other.

        The original's stretch of the scale is left out, so one number is drawn whatever the original.
        """
        if not self._names:
            return None
        index = self._index.get(original)
        end = self._ends[index] if index is not None else 0.0
        start = self._ends[index - 1] if index else 0.0
        width = end - start if index is not None else 0.0
        at = stream.uniform() * (self._ends[-1] - width)
        if index is not None and at >= start:
            at += width
        chosen = min(bisect_right(self._ends, at), len(self._names) - 1)
        if chosen == index:  # rounding at the border of the stretch left out
            chosen = chosen + 1 if chosen + 1 < len(self._names) else chosen - 1
        return self._names[chosen] if chosen >= 0 and self._names[chosen] != original else None


@cache
def _pool(role: Role, initial: str) -> _Pool:
    """The names of a role that begin with an initial (all for an empty one)."""
    table = surnames() if role == "family" else all_given_names() if role == "given" else given_names(role)
    return _Pool({name: max(share, _RAREST) for name, share in table.items() if name.startswith(initial)})
