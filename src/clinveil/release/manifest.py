"""`manifest.json`: the record of a run. The public edition names no path, host, user or source identifier."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clinveil.core.files import sha256
from clinveil.release.settings import ReleaseSettings

SCHEMA = "clinveil.manifest/1"
SYNTHETIC = "synthetic"  # `kind` of the manifest beside synthetic notes; a release's names none
SUMS = "SHA256SUMS"
CARD = "README.md"
NAME = "manifest.json"
# Settings that name a place on the custodian's machine; the public edition says only whether they were given.
_PLACES = ("patients", "keep_words", "vectors")
# How the run was called, not what it made.
_CALL = ("workers", "quiet", "force", "seed", "encoding", "max_note_bytes", "text", "id", "patient")


def public_settings(settings: ReleaseSettings) -> dict[str, Any]:
    """The settings that a reader of the release may see."""
    record = settings.flat()
    shown = {k: v for k, v in record.items() if k not in _CALL and k not in _PLACES}
    shown["n"] = str(settings.channel.n)
    return shown | {f"{k}_given": record.get(k) is not None for k in _PLACES if k in record}


def canonical(document: Mapping[str, Any]) -> str:
    """The JSON text that the manifest's own hash is taken of: sorted keys, no spaces, no `self` entry."""
    rest = {k: v for k, v in document.items() if k != "self_sha256"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sealed(document: Mapping[str, Any]) -> str:
    """The document as indented JSON with `self_sha256`, the hash of its canonical form."""
    seal = hashlib.sha256(canonical(document).encode()).hexdigest()
    return json.dumps({**document, "self_sha256": seal}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def released_files(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a release folder but the list of sums itself, by relative name."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != SUMS)
    return {p.relative_to(folder).as_posix(): sha256(p) for p in files}


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS` in the layout that `sha256sum --check` reads."""
    lines = (f"{digest}  {name}\n" for name, digest in released_files(folder).items())
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def write_companions(folder: Path, card: str, document: Mapping[str, Any]) -> None:
    """Write what a recipient needs beside the notes: the card, the manifest, sealed, and the sums of all files."""
    (folder / CARD).write_text(card, encoding="utf-8")
    (folder / NAME).write_text(sealed(document), encoding="utf-8")
    write_sums(folder)
