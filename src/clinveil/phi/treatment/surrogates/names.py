"""Surrogates of names: gender, origin, letter case and format are kept; names are drawn by
frequency.

Each word of a name is replaced separately, keyed by its normalised form, so "Smith", "SMITH, JOHN"
and "J. Smith" agree without coordination. Initials agree too: each initial of a patient has one
secret new initial, and names are drawn among those that begin with it. (Stubbs et al. 2015 map
letters one to one; here the new initial is drawn by its census share, and two initials may share
one.) Whether a word is a first name or a surname depends on the lists or the known patient, not on
its position, so all mentions agree; for unlisted words the note decides (`pools`). A misspelling
maps
like the name one edit away: of the known patient, of a frequent name, or of another unlisted name
that the note writes more often. A name of a known origin gets one of a similar origin; if few of
these begin with the new initial, the origin has priority. A lone initial may map to itself:
excluding this would disclose that no surrogate shares its original's initial.

E-mail addresses and user names are consistent with the names in them: john.smith@ gets the
surrogate of John Smith. Names in a local part (of the patient, of the note, or listed) are replaced
by their surrogates, and initials next to a surname by their new initials. Digits become other
digits, other letters become other letters. The domain is always one reserved for examples (RFC
2606).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from clinveil.core import Key
from clinveil.lexicons import all_given_names, name_form, nicknames, surnames
from clinveil.phi.detection.detector import words
from clinveil.phi.detection.detectors.known import name_forms, own_form
from clinveil.phi.name_variants import within_one_edit
from clinveil.phi.treatment.surrogates.numbers_and_places import DOMAINS, other_number
from clinveil.phi.treatment.surrogates.pools import (
    Role,
    by_ending,
    culture_of,
    gender,
    kin,
    listed,
    pool,
    role_of,
    usual_spelling,
)

if TYPE_CHECKING:
    from clinveil.corpus import Patient

_PARTICLES = words(
    "de la las los van von der den het ter ten te di da del della degli delle dei do dos das du des"
    " le bin binti binte ibn bint abu umm al el ul ap af av zu zur vom"
)
# Particles joined to the following name; the rest must be long enough to be a name.
_GLUED = re.compile(r"(?:vander|vanden|vande|vonder|delos|delas|dela)(?=[a-z]{3})")
_PIECE = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
POSSESSIVE = re.compile(r"'[sS]$")
_ABBREVIATED = re.compile(r"[A-Z]{2,3}")
_LIST = re.compile(r"\s*(?:,|;|/|&|\band\b)\s*", re.I)  # between the names of a list
_FAMILY_FIRST = re.compile(r"^[^,;/&]+,[^,;/&]+$")  # Smith, John
# The generation of a person is no name: it is left out with the sign before it.
_SUFFIX = re.compile(r",?\s+(?:(?i:jr|sr|jnr|snr)\b\.?|(?:II|III|IV)\b\.?)")


class NoteNames:
    """Evidence from one note about its names: roles and usual spellings of unlisted ones.

    Attributes:
        roles: by form. counts: mentions of each form.

    Args:
        text: the plain text of the note.
        spans: half-open character ranges of its names.
    """

    def __init__(self, text: str, spans: Iterable[tuple[int, int]]) -> None:
        self.roles: dict[str, Role] = {}
        self.counts: Counter[str] = Counter()
        self._shortened: dict[str, list[str]] = {}
        for start, end in spans:
            name = text[start:end]
            forms = [name_form(POSSESSIVE.sub("", piece)) for piece in _PIECE.findall(name)]
            forms = [form for form in forms if form not in _PARTICLES]
            self.counts.update(form for form in forms if len(form) > 1)
            relative = kin(text, start)
            for first in _given_names(name) if len(forms) > 1 or relative else ():
                if role_of(first) is None:
                    self.roles[first] = relative or by_ending_given(first)

    def spelling(self, form: str) -> str:
        """Return the form that an unlisted one misspells within the note, or the form itself."""
        if len(form) < 5 or listed(form):
            return form
        if not self._shortened:
            for name in self.counts:
                for short in _shortened(name) if len(name) > 3 else ():
                    self._shortened.setdefault(short, []).append(name)
        near = {name for short in _shortened(form) for name in self._shortened.get(short, ())} - {
            form
        }
        near = {name for name in near if within_one_edit(form, name)}
        return max([form, *sorted(near)], key=lambda name: (self.counts[name], name == form))


def _shortened(form: str) -> set[str]:
    """Return a form and its variants without one letter; forms within one edit share at least one
    of them.
    """
    return {form, *(form[:i] + form[i + 1 :] for i in range(len(form)))}


def _given_names(name: str) -> list[str]:
    """Return the forms of the given names in a name, or in each name of a list (`Ann Ito, Bo Lund
    and Cy Rask`).
    """
    parts = _LIST.split(name)
    forms = [
        [
            form
            for piece in _PIECE.findall(part)
            if (form := name_form(POSSESSIVE.sub("", piece))) not in _PARTICLES
        ]
        for part in parts
    ]
    if len(parts) == 2 and len(forms[0]) == 1 and _FAMILY_FIRST.search(name):
        return forms[1][:1]
    if len(parts) == 1:
        return forms[0][:1]
    return [words_of_form[0] for words_of_form in forms if len(words_of_form) > 1]


def by_ending_given(form: str) -> Role:
    """Return the gender suggested by the ending of a first name; `given` if the ending suggests a
    surname.
    """
    role = by_ending(form)
    return "given" if role == "family" else role


NOTHING = NoteNames("", ())


class NameSurrogates:
    """Generate the surrogates of the names in one patient's notes.

    Args:
        patient_id: the scope; within it, a name has one surrogate.
        patient: the known patient, if there is a feed.
        note: evidence from the current note.
    """

    def __init__(
        self, key: Key, patient_id: str, patient: Patient | None = None, note: NoteNames = NOTHING
    ) -> None:
        self._key = key
        self._patient_id = patient_id
        self._note = note
        self._name = patient.name if patient else ()
        self._known_forms = name_forms(self._name)
        self._first = _parts(self._name[0]) if self._name else set()
        self._last = _parts(self._name[-1]) if len(self._name) > 1 else set()
        self._cache: dict[str, str] = {}

    def of(self, original: str) -> str:
        """Return the name with every word and number replaced; particles belong to their word."""
        if original in self._cache:
            return self._cache[original]
        written = original
        original = _SUFFIX.sub("", original)
        pieces = list(_PIECE.finditer(original))
        particles = {i for i in range(len(pieces)) if _is_particle(original, pieces, i)}
        if len(particles) == len(pieces):
            particles = set()
        family = set[int]()
        start = 0
        # The words of hyphenated names of which one part is a surname.
        for i in range(1, len(pieces) + 1):
            if i == len(pieces) or original[pieces[i - 1].end() : pieces[i].start()] != "-":
                if i - start > 1 and any(
                    self.role(self.form(pieces[j][0])) == "family" for j in range(start, i)
                ):
                    family.update(range(start, i))
                start = i
        if len(pieces) > 1 and all(len(piece[0]) == 1 for piece in pieces):
            family.add(len(pieces) - 1)
        out = []
        position = 0
        for i, piece in enumerate(pieces):
            out.append(self._between(original[position : piece.start()]))
            position = piece.end()
            if i in particles:
                position += len(re.match(r"[\s-]*", original[position:])[0])  # type: ignore[index]
            else:
                out.append(self._word(piece[0], family=i in family))
        joined = "".join([*out, self._between(original[position:])])
        # `Berg, van der`.
        self._cache[written] = re.sub(r",\s*$", "", joined) if particles else joined
        return self._cache[written]

    def _between(self, marks: str) -> str:
        """Return the text between words with other digits (it may have a record number), without
        combining marks.
        """
        if not marks or marks.isspace():
            return marks
        bare = "".join(c for c in marks if not unicodedata.category(c).startswith("M"))
        return other_number(self._key, self._patient_id, bare) or bare

    def form(self, word: str) -> str:
        """Return the normalised form that a word represents, after correction of misspellings."""
        form = name_form(word)
        return own_form(word, self._known_forms) or self._note.spelling(
            usual_spelling(_GLUED.sub("", form))
        )

    def knows(self, form: str) -> bool:
        """Return whether a name of the patient or of the note has this form."""
        return form in self._known_forms or form in self._note.counts

    def initial(self, letter: str, *, family: bool = False) -> str:
        """Return the new initial of a single letter."""
        form = name_form(letter)
        tokens = [token for token in self._name if name_form(token)[:1] == form]
        if tokens:
            return self._drawn(self.form(tokens[-1 if family else 0]), None)[0]
        return _initial(self._key, self._patient_id, form, "family" if family else "given")

    def _word(self, word: str, *, family: bool = False) -> str:
        stem = POSSESSIVE.sub("", word)
        rest = word[len(stem) :]
        if len(name_form(stem)) == 1:
            return in_case_of(stem, self.initial(stem, family=family)) + rest
        if not family and (short := self._nickname(stem)):
            return in_case_of(stem, short) + rest
        if stem.islower() and not listed(name_form(stem)) and (user_name := _composed(stem, self)):
            return user_name + rest
        if _ABBREVIATED.fullmatch(stem) and not listed(name_form(stem)):
            letters = [self.initial(c, family=i == len(stem) - 1) for i, c in enumerate(stem)]
            return "".join(letters).upper() + rest
        return (
            in_case_of(
                stem, self._drawn(self.form(stem), "family" if family else None, name_form(stem))
            )
            + rest
        )

    def _nickname(self, word: str) -> str:
        """Return a short form of the surrogate of the full name (Bob, for Robert), or an empty
        string.
        """
        form = name_form(word)
        if form in self._known_forms or form in self._last or not nicknames().get(form):
            return ""
        full = _full_name(
            form, tuple(sorted(name for name in nicknames()[form] if self.knows(name)))
        )
        if not full or role_of(form) == "family":
            return ""
        drawn = self._drawn(full, None)
        shorts = sorted(nicknames().get(drawn.lower(), frozenset()) - self._known_forms - {form})
        return next(
            (short for short in shorts if len(short) < len(drawn)),
            drawn if drawn.lower() != form else "",
        )

    def _drawn(self, form: str, role: Role | None, written: str = "") -> str:
        return _draw(
            self._key, self._patient_id, self._known_forms, role or self.role(form), form, written
        )

    def role(self, form: str) -> Role:
        """Return the role: surname, or first name of a gender."""
        if form in self._last:
            return "family"
        if form not in self._first:
            return role_of(form) or self._note.roles.get(form) or by_ending(form)
        role = gender(form)
        return role if role != "given" or listed(form) else by_ending_given(form)


@lru_cache(maxsize=1 << 12)
def _full_name(form: str, known: tuple[str, ...]) -> str:
    """Return the full name of a nickname: a known one, or else the most frequent longer one; empty
    for a full name.
    """
    given_names = all_given_names()
    full = [name for name in known or sorted(nicknames()[form]) if len(name) > len(form)]
    best = max(full, key=lambda name: given_names.get(name, 0.0), default="")
    return best if known or given_names.get(best, 0.0) > _FULL * given_names.get(form, 0.0) else ""


@lru_cache(maxsize=1 << 12)  # most names occur several times in a note
def _draw(
    key: Key, scope: str, avoided: frozenset[str], role: Role, form: str, written: str
) -> str:
    """Return the surrogate of a form, with the same origin and the new initial if such names
    exist.
    """
    culture = culture_of(form, role)
    first = _initial(key, scope, form[:1], role)
    pools: list[tuple[Role, str, str]] = [(role, first, ""), (role, "", "")]
    if culture:
        pools = [(role, first, culture), (role, "", culture), ("given", "", culture), *pools]
    for kind, initial, origin in pools:
        names = pool(kind, initial, origin)
        if len(names) < _FEW:
            continue
        stream = key.stream("surrogate-name", scope, role, form)
        for _ in range(_TRIES):  # a name of the same patient would not hide this one
            name = names.draw(stream, form)
            if name and name != written and name not in avoided:
                return name
    return form[::-1]


@lru_cache(maxsize=1 << 12)
def _initial(key: Key, scope: str, letter: str, role: Role) -> str:
    """Return the secret new initial; first names share one mapping for all genders."""
    kind: Role = "family" if role == "family" else "given"
    return (pool(kind).draw(key.stream("surrogate-initial", scope, kind, letter), "") or letter)[0]


def _parts(token: str) -> set[str]:
    return {name_form(part) for part in (token, *token.split("-"))}


_TRIES = 8
_FULL = 3  # how much more frequent the full name is than a nickname that is also given at birth
_FEW = 3  # a smaller pool discloses too much about the original


def _is_particle(text: str, pieces: list[re.Match[str]], index: int) -> bool:
    """Return whether a word is a particle of an adjacent name: `van der Berg`, `Al-Khatib`, `Berg,
    van der`.
    """
    if pieces[index][0].lower() not in _PARTICLES:
        return False
    if index == len(pieces) - 1 or all(p[0].lower() in _PARTICLES for p in pieces[index:]):
        return "," in text[: pieces[index].start()]
    gap = text[pieces[index].end() : pieces[index + 1].start()]
    return bool(gap) and not gap.strip(" \t\r\n-'’")


def in_case_of(original: str, drawn: str) -> str:
    """Return a drawn name in the letter case of the original."""
    if original.isupper() and (len(original) > 1 or len(drawn) == 1):
        return drawn.upper()
    return drawn if original.islower() else drawn.capitalize()


_AT = re.compile(r"@|\sat\s|\s?\(at\)\s?|\s?\[at\]\s?", re.I)
_LOCAL_PART = re.compile(r"[A-Za-z]+|\d+|[^A-Za-z\d]+")
_SIGNS = re.compile(r"[^A-Za-z0-9._+-]")
_SHORTEST = 3  # minimum letters of a surname in a user name
_KNOWN = 0.01  # percent of the population; rarer surnames are not searched for inside a word


def email(key: Key, scope: str, original: str, names: NameSurrogates) -> str:
    """Return another address: the local part from `account`, a domain reserved for examples."""
    form = re.sub(r"\s", "", original).casefold()
    local = _SIGNS.sub("", _AT.split(original.strip(), maxsplit=1)[0])
    domain = key.stream("surrogate-email", scope, form).choice(DOMAINS)
    return f"{account(key, scope, local, names) or 'mail'}@{domain}"


def number_or_account(key: Key, scope: str, original: str, names: NameSurrogates) -> str | None:
    """Return another number of the same format. A user name (`jsmith`) becomes that of the
    surrogate name.
    """
    if re.fullmatch(r"[A-Za-z][A-Za-z._-]*\d{0,4}", original) and any(
        len(part) > _SHORTEST and _named(part, names) for part in re.findall(r"[A-Za-z]+", original)
    ):
        return account(key, scope, original, names)
    return other_number(key, scope, original)


def account(key: Key, scope: str, local: str, names: NameSurrogates) -> str | None:
    """Return the surrogate of a local part or user name, or None if it has no letters or digits."""
    parts = _LOCAL_PART.findall(local)
    joined = "".join(_local_part(key, scope, part, names, alone=len(parts) == 1) for part in parts)
    # A short part may map to itself; then the whole is replaced like a number.
    return joined if joined.casefold() != local.casefold() else other_number(key, scope, local)


def _local_part(key: Key, scope: str, part: str, names: NameSurrogates, *, alone: bool) -> str:
    if not part[0].isalpha():
        return (other_number(key, scope, part) or part) if part[0].isdigit() else part
    if len(part) == 1 and not alone:
        return _letters_like(names.initial(part), part)
    if not alone and len(part) >= _SHORTEST and listed(name_form(part)):
        return _letters_like(names.of(part), part)
    return _named(part, names) or other_number(key, scope, part) or part


def _named(part: str, names: NameSurrogates) -> str:
    """Return the part with its names replaced, or an empty string if it contains none."""
    if not listed(name_form(part)) and (composed := _composed(part, names)):
        return composed
    return _letters_like(names.of(part), part) if _is_name(part, names) else ""


def _composed(part: str, names: NameSurrogates) -> str:
    """Return a user name made of two names, or of an initial and a name, with both replaced; or an
    empty string.
    """
    for cut in (1, len(part) - 1, *range(len(part) - _SHORTEST, _SHORTEST - 1, -1)):
        halves = [half for half in (part[:cut], part[cut:]) if half]
        if len(halves) == 2 and all(
            len(p) == 1 or (len(p) >= _SHORTEST and _is_name(p, names)) for p in halves
        ):
            return _letters_like(
                "".join(names.initial(p) if len(p) == 1 else names.of(p) for p in halves), part
            )
    return ""


def _is_name(part: str, names: NameSurrogates) -> bool:
    """Return whether a part is a name of the patient or of the note, or a usual one."""
    form = name_form(part)
    return (
        names.knows(form)
        or max(surnames().get(form, 0.0), all_given_names().get(form, 0.0)) >= _KNOWN
    )


def _letters_like(surrogate: str, part: str) -> str:
    """Return the letters only, in the case of the original part."""
    bare = re.sub(r"[^A-Za-z]", "", surrogate)
    return bare.upper() if part.isupper() else bare if part[0].isupper() else bare.lower()
