"""Which names are kept for tests: whatever is trained on names never sees them."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from clinveil.lexicons.names import name_form

ONE_IN = 5


@lru_cache(maxsize=1 << 16)
def held_out(name: str) -> bool:
    """Whether a name is one of the fifth that is for tests only, by its form and nothing else.

    >>> [name for name in ("Nelson", "NELSON", "Smith") if held_out(name)]
    ['Nelson', 'NELSON']
    """
    digest = blake2b(name_form(name).encode(), digest_size=8, person=b"held-out name").digest()
    return int.from_bytes(digest, "big") % ONE_IN == 0
