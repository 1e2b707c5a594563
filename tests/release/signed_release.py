"""A small signed release, written as a run writes it."""

from __future__ import annotations

from pathlib import Path

from clinveil.core import Key, SigningKey
from clinveil.releases.manifest import Account, NotesFile, sealed, write_companions
from clinveil.report import CHECKS, Gate, Verdict

KEY = Key(bytes(range(32)))
SIGNER = SigningKey.derived(KEY)


def account(key: Key = KEY, *, notes: str = "notes", **changes) -> Account:
    """Return the record of a release of two parts with one note each."""
    file = NotesFile(notes, 2, "text", "note_id")
    gate = Gate("words", "Are words rare?", CHECKS, True, 0, 1, "No word is.", "")
    verdicts = [Verdict("agreement", (gate,))]
    return Account("obfuscated", key, file, 2, {}, verdicts, [], **changes)


def signed_release(folder: Path, key: Key = KEY, vault: Path | None = None) -> Path:
    """Write a release of part files, and the manifest of its vault."""
    (folder / "notes").mkdir(parents=True)
    for row in (1, 2):
        (folder / "notes" / f"part-{row}.csv").write_text(f'"note_id","text"\n"{row}","a b"\n')
    files = write_companions(folder, "card", "<p>report</p>", account(key))
    if vault is not None:
        vault.mkdir(parents=True)
        (vault / "manifest.json").write_text(sealed(account(key).manifest(files, outward=False)))
    return folder
