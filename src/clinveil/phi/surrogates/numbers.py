"""Numbers for numbers: each digit by a digit, each letter by a letter of its case, everything else as it was.

Keyed by the letters and digits alone, so that 123-45-67 and 1234567 agree. Uniform on all strings of the same shape
but the original. Letters and digits of other scripts become ASCII ones, so that none of them stays. E-mail, web and
internet addresses lie in name spaces that are kept free for examples (RFC 2606, 5737, 3849).
"""

from __future__ import annotations

import re
import string
import unicodedata
from math import prod

from clinveil.core.keys import Key, Stream

_ALPHABETS = (string.digits, string.ascii_lowercase, string.ascii_uppercase)
_DOMAINS = ("example.com", "example.net", "example.org")
_NETS = ("192.0.2", "198.51.100", "203.0.113")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def other_number(key: Key, patient_id: str, original: str) -> str | None:
    """Another number of the same shape, or None where the original has neither digit nor letter."""
    return _other("surrogate-number", key, patient_id, original)


def social_security_number(key: Key, patient_id: str, original: str) -> str | None:
    """As `other_number`, beginning with 9: such numbers are never given out."""
    drawn = _other("surrogate-ssn", key, patient_id, original)
    first = next((i for i, c in enumerate(drawn or "") if c.isdigit()), None)
    if drawn is None or first is None:
        return drawn
    made = drawn[:first] + "9" + drawn[first + 1 :]
    if made != original:
        return made
    last = max(i for i, c in enumerate(made) if c.isdigit())
    return made[:last] + str((int(made[last]) + 1) % 10) + made[last + 1 :]


def _other(purpose: str, key: Key, patient_id: str, original: str) -> str | None:
    written = "".join(map(_ascii, original))
    places = [(i, alphabet) for i, c in enumerate(written) for alphabet in _ALPHABETS if c in alphabet]
    if not places:
        return None
    form = "".join(c for c in original if c.isalnum()).casefold()
    size = prod(len(alphabet) for _, alphabet in places)
    step = 1 + _large(key.stream(purpose, patient_id, form), size - 1)
    return _added(written, places, step)


def _ascii(c: str) -> str:
    """A character; for a letter or digit of another script an ASCII one of its kind, nothing for a mark on it."""
    if c.isascii():
        return c
    if not c.isalnum():
        return "" if unicodedata.category(c).startswith("M") else c
    return str(unicodedata.digit(c)) if c.isdigit() else "X" if c.isupper() else "x"


def _added(original: str, places: list[tuple[int, str]], step: int) -> str:
    """The original moved by `step` on the circle of all strings of its shape; not the original for 0 < step < size."""
    out = list(original)
    for position, alphabet in reversed(places):
        step, digit = divmod(step + alphabet.index(original[position]), len(alphabet))
        out[position] = alphabet[digit]
    return "".join(out)


def _large(stream: Stream, bound: int) -> int:
    """A uniform integer in [0, bound) for any bound; the bias is below 2**-64."""
    number = 0
    for _ in range(bound.bit_length() // 64 + 2):
        number = number << 64 | stream.uint64()
    return number % bound


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
