"""The secret key of a release, and the keyed streams that all release randomness comes from.

Release randomness is a pseudo-random function of (key, purpose, note or patient, position or word), so it does not
depend on batch, order or worker count, and nobody without the key can replay it. Training and measuring use an
explicit `numpy.random.Generator` instead; the two are never mixed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from clinveil.core.errors import InputError

T = TypeVar("T")
KEY_BYTES = 32
TEST_SEED = "TEST SEED: not for release"  # said, and written, where a key is made of a public seed


class Key:
    """32 secret bytes. Its repr shows only the commitment.

    Attributes:
        test_seed: the seed it was made from when it is not secret (tests and studies), else None.
    """

    __slots__ = ("_known", "_secret", "test_seed")

    def __init__(self, secret: bytes, *, test_seed: int | None = None) -> None:
        if len(secret) != KEY_BYTES:
            raise InputError(f"a key has {KEY_BYTES} bytes, this one {len(secret)}")
        self._secret = secret
        self.test_seed = test_seed
        self._known: dict[tuple[str, int], bytes] = {}

    @classmethod
    def generate(cls) -> Key:
        """A new key from the operating system's generator."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def from_seed(cls, seed: int) -> Key:
        """The key of a public seed: replayable by anyone, so never for a release."""
        return cls(hashlib.blake2b(b"clinveil test seed %d" % seed, digest_size=KEY_BYTES).digest(), test_seed=seed)

    @classmethod
    def load(cls, path: Path) -> Key:
        """Read a key file of 32 raw bytes. Raises InputError if it is not one."""
        try:
            return cls(path.read_bytes())
        except OSError:
            raise InputError("no key can be read here", where=path.name, hint="name the vault's key.bin") from None

    def save(self, path: Path) -> None:
        """Write the raw bytes, readable by the owner only; an existing file is refused."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(self._secret)

    @property
    def commitment(self) -> str:
        """SHA-256 of the key in hex: proves later which key was used, and gives nothing away."""
        return hashlib.sha256(b"clinveil key commitment" + self._secret).hexdigest()

    def subkey(self, purpose: str, size: int = KEY_BYTES) -> bytes:
        """`size` bytes (at most 64) that belong to this purpose alone (keyed BLAKE2b, RFC 7693)."""
        made = self._known.get((purpose, size))
        if made is None:
            hashed = hashlib.blake2b(purpose.encode(), digest_size=size, key=self._secret, person=b"clinveil-subkey")
            made = self._known[purpose, size] = hashed.digest()
        return made

    def digest(self, purpose: str, *path: str) -> int:
        """A 64-bit integer that is a keyed pseudo-random function of (purpose, path)."""
        return int.from_bytes(_chain(self.subkey(purpose), path, 8), "little")

    def stream(self, purpose: str, *path: str) -> Stream:
        """The keyed stream of (purpose, path), for example ("surrogates", patient_id)."""
        return Stream(_chain(self.subkey(purpose), path, KEY_BYTES))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and hmac.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return int.from_bytes(self.subkey("hash of the object", 8), "little")

    def __repr__(self) -> str:
        return f"Key(commitment={self.commitment[:12]}…)"


def _chain(secret: bytes, path: Sequence[str], size: int) -> bytes:
    # Each part is preceded by its length, so that ("ab", "c") and ("a", "bc") differ.
    message = b"".join(len(part := p.encode("utf-8", "surrogatepass")).to_bytes(8, "little") + part for p in path)
    return hashlib.blake2b(message, digest_size=size, key=secret).digest()


class Stream:
    """An endless keyed stream of random numbers: BLAKE2b in counter mode."""

    __slots__ = ("_block", "_counter", "_secret")

    def __init__(self, secret: bytes) -> None:
        self._secret, self._counter, self._block = secret, 0, b""

    def uint64(self) -> int:
        """The next 64 random bits."""
        if not self._block:
            self._block = hashlib.blake2b(self._counter.to_bytes(8, "little"), key=self._secret).digest()
            self._counter += 1
        head, self._block = self._block[:8], self._block[8:]
        return int.from_bytes(head, "little")

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound), without modulo bias."""
        limit = (1 << 64) - (1 << 64) % bound
        while (draw := self.uint64()) >= limit:
            pass
        return draw % bound

    def uniform(self) -> float:
        """A uniform float in [0, 1) with 53 random bits."""
        return (self.uint64() >> 11) * 2.0**-53

    def choice(self, items: Sequence[T]) -> T:
        """One of the items, each with the same probability."""
        return items[self.below(len(items))]
