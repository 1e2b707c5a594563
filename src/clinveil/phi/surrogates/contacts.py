"""E-mail, web and internet addresses in name spaces that are kept free for examples (RFC 2606, 5737, 3849)."""

from __future__ import annotations

import re

from clinveil.core.keys import Key
from clinveil.phi.surrogates.numbers import other_number

_DOMAINS = ("example.com", "example.net", "example.org")
_NETS = ("192.0.2", "198.51.100", "203.0.113")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def email(key: Key, patient_id: str, original: str) -> str:
    """Another local part of the same shape in another domain; the original domain is not kept."""
    form = re.sub(r"\s", "", original).casefold()
    local = re.split(r"@|\sat\s|\(at\)|\[at\]", original.strip(), maxsplit=1)[0].strip()
    shape = re.sub(r"[^A-Za-z0-9._-]", "x", local)
    stream = key.stream("surrogate-email", patient_id, form)
    return f"{other_number(key, patient_id, shape) or 'mail'}@{stream.choice(_DOMAINS)}"


def url(key: Key, patient_id: str, original: str) -> str:
    """Another address with the same scheme and nothing else of the original."""
    stream = key.stream("surrogate-url", patient_id, original.casefold())
    scheme = re.match(r"(?:\w+://)?(?:www\.)?", original, re.IGNORECASE)
    path = "".join(stream.choice(_LETTERS) for _ in range(8))
    return f"{scheme[0] if scheme else ''}{stream.choice(_DOMAINS)}/{path}"


def internet_address(key: Key, patient_id: str, original: str) -> str:
    """An address of a net for documentation."""
    stream = key.stream("surrogate-ip", patient_id, original.casefold())
    if ":" in original:
        return f"2001:db8::{stream.below(1 << 16):x}:{stream.below(1 << 16):x}"
    made = f"{stream.choice(_NETS)}.{stream.below(256)}"
    net, _, host = made.rpartition(".")
    return f"{net}.{(int(host) + 1) % 256}" if made == original else made
