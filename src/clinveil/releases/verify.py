"""`clinveil verify`: does a release folder hold what its manifest says? Needs no secret."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinveil.core.errors import ClinveilError, InputError
from clinveil.core.settings import NotesSettings
from clinveil.corpus.open import open_corpus
from clinveil.releases.manifest import CARD, NAME, SCHEMA, SUMS, SYNTHETIC, canonical, released_files
from clinveil.report.record import tally

REPORT = "report.html"
COMPANIONS = (CARD, NAME, SUMS)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was verified: what, whether it held, and a word on it."""

    what: str
    passed: bool
    said: str = ""


def verify(folder: Path) -> list[Check]:
    """All checks of a folder of `release` or of `synthesize`. Raises InputError where there is nothing to check."""
    if not folder.is_dir():
        raise InputError("is no release folder", where=folder.name, remedy="name OUT/release, or OUT of synthesize")
    manifest = _manifest(folder / NAME)
    synthetic = manifest is not None and manifest.get("kind") == SYNTHETIC
    needed = COMPANIONS if synthetic else (*COMPANIONS, REPORT)
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing:
        hint = "; name OUT/release" if (folder / "release").is_dir() or (folder / "out").is_dir() else ""
        return [Check("all files are there", False, "missing: " + ", ".join(missing) + hint)]
    if manifest is None:
        return [Check("the manifest can be read", False, f"it is not {SCHEMA}")]
    try:
        only = [_nothing_else(folder, manifest)] if synthetic else []
        return [Check("all files are there", True), *only, *_sums(folder), *_manifest_checks(folder, manifest)]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        # A manifest from elsewhere may hold anything.
        return [Check("the manifest and the list of sums say what they should", False, "they are damaged")]


def _manifest(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return document if document["schema"] == SCHEMA else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _nothing_else(folder: Path, manifest: dict[str, Any]) -> Check:
    """A list of sums can be made to name anything; beside synthetic notes only their companions may lie."""
    known = {*COMPANIONS, REPORT, manifest["notes"]["file"]}
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    extra = sorted(name for name in found if name not in known)
    return Check("nothing but the notes and what belongs to them is there", not extra, _names(extra))


def _sums(folder: Path) -> Iterator[Check]:
    listed = {}
    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    found = released_files(folder)
    extra, gone = sorted(found.keys() - listed.keys()), sorted(listed.keys() - found.keys())
    changed = sorted(n for n in found.keys() & listed.keys() if found[n] != listed[n])
    yield Check("every file is listed, and every listed file is there", not extra and not gone, _names(extra + gone))
    yield Check("the hashes agree", not changed, _names(changed))


def _manifest_checks(folder: Path, manifest: dict[str, Any]) -> Iterator[Check]:
    seal = hashlib.sha256(canonical(manifest).encode()).hexdigest()
    yield Check("the manifest is as it was sealed", seal == manifest.get("self_sha256"))
    found = released_files(folder)
    named: dict[str, str] = manifest["files"]
    yield Check("the manifest names the released notes", all(found.get(n) == d for n, d in named.items()))
    gates = manifest["gates"]
    said = tally(str(g.get("outcome", "passed" if g["passed"] else "failed")) for g in gates)
    yield Check("all gates passed", bool(gates) and all(g["passed"] for g in gates), said)
    yield Check("no test seed", not manifest["test_seed"])
    yield _rows(folder, manifest)


def _rows(folder: Path, manifest: dict[str, Any]) -> Check:
    what = "the notes have the columns and the rows that the manifest says"
    notes = manifest["notes"]
    if Path(notes["file"]).name != notes["file"]:
        return Check(what, False, "it names notes outside the release")
    try:
        rows = 0
        settings = NotesSettings(text=notes["text"], id=notes["id"], patient=notes["patient"], preset="none")
        for batch in open_corpus(folder / notes["file"], settings, keep=tuple(notes["keep"])).batches():
            rows += batch.num_rows
    except ClinveilError as error:
        return Check(what, False, error.what)
    return Check(what, rows == notes["rows"], f"{rows:,} rows")


def _names(names: list[str]) -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
