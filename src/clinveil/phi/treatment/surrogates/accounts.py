"""E-mail addresses and user names, consistent with the names in them: john.smith@ gets the surrogate of John Smith.

Names in a local part (of the patient, of the note, or listed) are replaced by their surrogates, and initials next to a
surname by their new initials. Digits become other digits, other letters become other letters. The domain is always one
reserved for examples (RFC 2606).
"""

from __future__ import annotations

import re

from clinveil.core.keys import Key
from clinveil.lexicons.names import all_given_names, name_form, surnames
from clinveil.phi.treatment.surrogates.names import NameSurrogates
from clinveil.phi.treatment.surrogates.numbers import other_number
from clinveil.phi.treatment.surrogates.roles import listed

_DOMAINS = ("example.com", "example.net", "example.org")
_AT = re.compile(r"@|\sat\s|\s?\(at\)\s?|\s?\[at\]\s?", re.I)
_PART = re.compile(r"[A-Za-z]+|\d+|[^A-Za-z\d]+")
_SIGNS = re.compile(r"[^A-Za-z0-9._+-]")
_SHORTEST = 3  # minimum letters of a surname in a user name
_KNOWN = 0.01  # percent of the population; rarer surnames are not searched for inside a word


def email(key: Key, scope: str, original: str, names: NameSurrogates) -> str:
    """Return another address: the local part from `account`, a domain reserved for examples."""
    form = re.sub(r"\s", "", original).casefold()
    local = _SIGNS.sub("", _AT.split(original.strip(), maxsplit=1)[0])
    domain = key.stream("surrogate-email", scope, form).choice(_DOMAINS)
    return f"{account(key, scope, local, names) or 'mail'}@{domain}"


def number_or_account(key: Key, scope: str, original: str, names: NameSurrogates) -> str | None:
    """Return another number of the same format. A user name (`jsmith`) becomes that of the surrogate name."""
    if re.fullmatch(r"[A-Za-z][A-Za-z._-]*\d{0,4}", original) and any(
        len(part) > _SHORTEST and _named(part, names) for part in re.findall(r"[A-Za-z]+", original)
    ):
        return account(key, scope, original, names)
    return other_number(key, scope, original)


def account(key: Key, scope: str, local: str, names: NameSurrogates) -> str | None:
    """Return the surrogate of a local part or user name, or None if it has no letters or digits."""
    parts = _PART.findall(local)
    replaced = [_part(key, scope, part, names, alone=len(parts) == 1) for part in parts]
    joined = "".join(replaced)
    # A short part may map to itself; then the whole is replaced like a number.

    return joined if joined.casefold() != local.casefold() else other_number(key, scope, local)


def _part(key: Key, scope: str, part: str, names: NameSurrogates, *, alone: bool) -> str:
    if not part[0].isalpha():
        return (other_number(key, scope, part) or part) if part[0].isdigit() else part
    if len(part) == 1 and not alone:
        return _plain(names.initial(part), part)
    if not alone and len(part) >= _SHORTEST and listed(name_form(part)):
        return _plain(names.of(part), part)
    return _named(part, names) or other_number(key, scope, part) or part


def _named(part: str, names: NameSurrogates) -> str:
    """Return the part with its names replaced, or an empty string if it contains none."""
    if names.knows(part) or _listed(part):
        return _plain(names.of(part), part)
    for cut in (1, len(part) - 1, *range(len(part) - _SHORTEST, _SHORTEST - 1, -1)):
        first, second = part[:cut], part[cut:]
        if min(len(first), len(second)) < 1 or not all(_name_or_letter(p, names) for p in (first, second)):
            continue
        replaced = [names.initial(p) if len(p) == 1 else names.of(p) for p in (first, second)]
        return _plain("".join(replaced), part)
    return ""


def _name_or_letter(part: str, names: NameSurrogates) -> bool:
    return len(part) == 1 or (len(part) >= _SHORTEST and (names.knows(part) or _listed(part)))


def _listed(part: str) -> bool:
    form = name_form(part)
    return max(surnames().get(form, 0.0), all_given_names().get(form, 0.0)) >= _KNOWN


def _plain(surrogate: str, part: str) -> str:
    """Return the letters only, in the case of the original part."""
    bare = re.sub(r"[^A-Za-z]", "", surrogate)
    return bare.upper() if part.isupper() else bare if part[0].isupper() else bare.lower()
