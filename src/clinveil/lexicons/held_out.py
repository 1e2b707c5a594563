"""Split of all names into a training and a test part. Models trained on names never use the test part."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from clinveil.lexicons.names import name_form

ONE_IN = 5


@lru_cache(maxsize=1 << 16)
def held_out(name: str) -> bool:
    """Return whether a name belongs to the fifth reserved for tests. Depends only on its normalised form.

    >>> [name for name in ("Nelson", "NELSON", "Smith") if held_out(name)]
    ['Nelson', 'NELSON']
    """
    digest = blake2b(name_form(name).encode(), digest_size=8, person=b"held-out name").digest()
    return int.from_bytes(digest, "big") % ONE_IN == 0
