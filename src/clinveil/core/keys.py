"""The secret key of a release, the keyed streams for all its randomness, and the signature of its
manifest.

Release randomness is a pseudo-random function of (key, purpose, note or patient, position or word).
It does not depend on batch, order or worker count, and cannot be reproduced without the key.
Training and measuring use an explicit `numpy.random.Generator` instead; the two are never mixed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from clinveil.core.errors import InputError
from clinveil.core.files import private_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

T = TypeVar("T")
KEY_BYTES = 32
TEST_SEED = (
    "TEST SEED: not for release"  # printed and written wherever a key comes from a public seed
)


class Key:
    """32 secret bytes. Its repr shows only the commitment.

    Attributes:
        test_seed: the public seed that it was made from (tests and studies), else None.
    """

    __slots__ = ("_known", "_secret", "test_seed")

    def __init__(self, secret: bytes, *, test_seed: int | None = None) -> None:
        if len(secret) != KEY_BYTES:
            raise InputError(
                f"the key is damaged: {len(secret)} bytes instead of {KEY_BYTES}",
                hint="restore the file key.bin from a copy of the vault",
            )
        self._secret = secret
        self.test_seed = test_seed
        self._known: dict[tuple[str, int], bytes] = {}

    @classmethod
    def generate(cls) -> Key:
        """Return a new key from the operating system's random generator."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def from_seed(cls, seed: int) -> Key:
        """Return the key of a public seed; anyone can reproduce it, so never use it for a
        release.
        """
        return cls(
            hashlib.blake2b(b"clinveil test seed %d" % seed, digest_size=KEY_BYTES).digest(),
            test_seed=seed,
        )

    @classmethod
    def load(cls, path: Path) -> Key:
        """Read a key file of 32 raw bytes. Raises InputError if it is not a key file."""
        try:
            return cls(path.read_bytes())
        except OSError:
            raise InputError(
                "cannot read the key file", where=path.name, hint="pass the vault's key.bin"
            ) from None

    def save(self, path: Path) -> None:
        """Write the raw bytes with mode 0600, atomically. Raises FileExistsError for an existing
        file.
        """
        if path.exists():
            raise FileExistsError(path.name)
        # A killed run leaves no empty key, with which it could not be resumed.
        private_bytes(path, self._secret)

    @property
    def commitment(self) -> str:
        """SHA-256 of the key in hex: proves later which key was used without disclosing it."""
        return hashlib.sha256(b"clinveil key commitment" + self._secret).hexdigest()

    def subkey(self, purpose: str, size: int = KEY_BYTES) -> bytes:
        """Return `size` bytes (at most 64) derived for this purpose alone (keyed BLAKE2b, RFC
        7693).
        """
        subkey = self._known.get((purpose, size))
        if subkey is None:
            hashed = hashlib.blake2b(
                purpose.encode(), digest_size=size, key=self._secret, person=b"clinveil-subkey"
            )
            subkey = self._known[purpose, size] = hashed.digest()
        return subkey

    def digest(self, purpose: str, *path: str) -> int:
        """Return a 64-bit integer that is a keyed pseudo-random function of (purpose, path)."""
        return int.from_bytes(_chain(self.subkey(purpose), path, 8), "little")

    def stream(self, purpose: str, *path: str) -> Stream:
        """Return the keyed stream of (purpose, path), for example ("surrogates", patient_id)."""
        return Stream(_chain(self.subkey(purpose), path, KEY_BYTES))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and hmac.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return int.from_bytes(self.subkey("hash of the object", 8), "little")

    def __repr__(self) -> str:
        return f"Key(commitment={self.commitment[:12]}…)"


def _chain(secret: bytes, path: Sequence[str], size: int) -> bytes:
    # Each part is preceded by its length, so that ("ab", "c") and ("a", "bc") differ.
    message = b"".join(
        len(part := p.encode("utf-8", "surrogatepass")).to_bytes(8, "little") + part for p in path
    )
    return hashlib.blake2b(message, digest_size=size, key=secret).digest()


class Stream:
    """An endless keyed stream of random numbers: BLAKE2b in counter mode."""

    __slots__ = ("_block", "_counter", "_secret")

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._counter = 0
        self._block = b""

    def uint64(self) -> int:
        """Return the next 64 random bits."""
        if not self._block:
            self._block = hashlib.blake2b(
                self._counter.to_bytes(8, "little"), key=self._secret
            ).digest()
            self._counter += 1
        head = self._block[:8]
        self._block = self._block[8:]
        return int.from_bytes(head, "little")

    def below(self, bound: int) -> int:
        """Return a uniform integer in [0, bound), without modulo bias."""
        limit = (1 << 64) - (1 << 64) % bound
        while (draw := self.uint64()) >= limit:
            pass
        return draw % bound

    def uniform(self) -> float:
        """Return a uniform float in [0, 1) with 53 random bits."""
        return (self.uint64() >> 11) * 2.0**-53

    def choice(self, items: Sequence[T]) -> T:
        """Return one of the items, each with the same probability."""
        return items[self.below(len(items))]


class SigningKey:
    """An Ed25519 key (RFC 8032) that signs the manifest of a release.

    Attributes:
        public_pem: the public key as PEM. fingerprint: of the public key, see `fingerprint_of`.
    """

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public_pem = _pem(private.public_key())
        self.fingerprint = fingerprint_of(self.public_pem)

    @classmethod
    def derived(cls, key: Key) -> SigningKey:
        """Return the signing key of a release key; releases under one key share it."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.from_private_bytes(key.subkey("signature of the manifest")))

    @classmethod
    def load(cls, path: Path) -> SigningKey:
        """Read an unencrypted PEM file with an Ed25519 private key. Raises InputError for any other
        file.
        """
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            private = load_pem_private_key(path.read_bytes(), password=None)
        except (OSError, TypeError, ValueError, UnsupportedAlgorithm):
            private = None
        if not isinstance(private, Ed25519PrivateKey):
            hint = "create one with openssl genpkey -algorithm ed25519"
            raise InputError(
                "is not an unencrypted Ed25519 private key in PEM format",
                where=path.name,
                hint=hint,
            )
        return cls(private)

    def sign(self, data: bytes) -> bytes:
        """Return the signature of the data, 64 bytes."""
        return self._private.sign(data)


def _pem(public: Ed25519PublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _public_key(pem: bytes) -> Ed25519PublicKey:
    """Return an Ed25519 public key. Raises ValueError for anything else."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        public = load_pem_public_key(pem)
    except UnsupportedAlgorithm:
        public = None
    if not isinstance(public, Ed25519PublicKey):
        raise ValueError("not an Ed25519 public key in PEM format")
    return public


def canonical_pem(public_pem: bytes) -> bytes:
    """Return the key's PEM as OpenSSL writes it, without other text. Raises ValueError."""
    return _pem(_public_key(public_pem))


def fingerprint_of(public_pem: bytes) -> str:
    """Return "SHA256:" and the unpadded Base64 SHA-256 of an Ed25519 public key (DER). Raises
    ValueError.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = _public_key(public_pem).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return "SHA256:" + base64.b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")


def signature_agrees(public_pem: bytes, signature: bytes, data: bytes) -> bool:
    """Return whether this is the key's signature of the data; False for a damaged key too."""
    from cryptography.exceptions import InvalidSignature

    try:
        _public_key(public_pem).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True
