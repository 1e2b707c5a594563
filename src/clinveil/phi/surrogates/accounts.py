"""E-mail addresses and user names that cohere with the names they are made of: john.smith@ goes where John Smith went.

The words of a local part that are names (of the patient, of the note, or listed) become those names' surrogates, an
initial before or after a surname its new initial; digits become other digits, all else other letters. The domain is
never kept: it is one that is set aside for examples (RFC 2606).
"""

from __future__ import annotations

import re

from clinveil.core.keys import Key
from clinveil.lexicons.names import all_given_names, name_form, surnames
from clinveil.phi.surrogates.names import NameSurrogates
from clinveil.phi.surrogates.numbers import other_number
from clinveil.phi.surrogates.roles import listed

_DOMAINS = ("example.com", "example.net", "example.org")
_AT = re.compile(r"@|\sat\s|\s?\(at\)\s?|\s?\[at\]\s?", re.I)
_PART = re.compile(r"[A-Za-z]+|\d+|[^A-Za-z\d]+")
_SIGNS = re.compile(r"[^A-Za-z0-9._+-]")
_SHORTEST = 3  # letters of a surname in a user name
_KNOWN = 0.01  # percent of the population: a rarer surname is not looked for inside a word


def email(key: Key, scope: str, original: str, names: NameSurrogates) -> str:
    """Another address: its local part by `account`, its domain one for examples."""
    form = re.sub(r"\s", "", original).casefold()
    local = _SIGNS.sub("", _AT.split(original.strip(), maxsplit=1)[0])
    domain = key.stream("surrogate-email", scope, form).choice(_DOMAINS)
    return f"{account(key, scope, local, names) or 'mail'}@{domain}"


def number_or_account(key: Key, scope: str, original: str, names: NameSurrogates) -> str | None:
    """Another number of the same shape; of what is a user name (`jsmith`) the one of the new name."""
    if re.fullmatch(r"[A-Za-z][A-Za-z._-]*\d{0,4}", original) and any(
        len(part) > _SHORTEST and _named(part, names) for part in re.findall(r"[A-Za-z]+", original)
    ):
        return account(key, scope, original, names)
    return other_number(key, scope, original)


def account(key: Key, scope: str, local: str, names: NameSurrogates) -> str | None:
    """The local part of an address, or a user name; None where nothing is left of it."""
    parts = _PART.findall(local)
    made = [_part(key, scope, part, names, alone=len(parts) == 1) for part in parts]
    whole = "".join(made)
    # A short part may fall on itself; then it is a number like any other.
    return whole if whole.casefold() != local.casefold() else other_number(key, scope, local)


def _part(key: Key, scope: str, part: str, names: NameSurrogates, *, alone: bool) -> str:
    if not part[0].isalpha():
        return (other_number(key, scope, part) or part) if part[0].isdigit() else part
    if len(part) == 1 and not alone:
        return _plain(names.initial(part), part)
    if not alone and len(part) >= _SHORTEST and listed(name_form(part)):
        return _plain(names.of(part), part)
    return _named(part, names) or other_number(key, scope, part) or part


def _named(part: str, names: NameSurrogates) -> str:
    """The part with the names in it replaced; empty where it is none."""
    if names.knows(part) or _listed(part):
        return _plain(names.of(part), part)
    for cut in (1, len(part) - 1, *range(len(part) - _SHORTEST, _SHORTEST - 1, -1)):
        one, two = part[:cut], part[cut:]
        if min(len(one), len(two)) < 1 or not all(_name_or_letter(each, names) for each in (one, two)):
            continue
        made = [names.initial(each) if len(each) == 1 else names.of(each) for each in (one, two)]
        return _plain("".join(made), part)
    return ""


def _name_or_letter(part: str, names: NameSurrogates) -> bool:
    return len(part) == 1 or (len(part) >= _SHORTEST and (names.knows(part) or _listed(part)))


def _listed(part: str) -> bool:
    form = name_form(part)
    return max(surnames().get(form, 0.0), all_given_names().get(form, 0.0)) >= _KNOWN


def _plain(made: str, part: str) -> str:
    """Letters only, in the case of an address."""
    bare = re.sub(r"[^A-Za-z]", "", made)
    return bare.upper() if part.isupper() else bare if part[0].isupper() else bare.lower()
