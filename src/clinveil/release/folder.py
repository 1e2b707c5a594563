"""The folder of a release run: two trees. `OUT/vault/` holds every secret; `OUT/release/` appears at the very end.

It appears in one rename, and only if all gates passed. Scratch text lies in `OUT/vault/work/` and is removed at exit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clinveil.core.runfolder import Kind, RunFolder

_MADE: tuple[str, ...] = ("vectors", "neighbours", "channel", "crosswalk.parquet", "alignment.parquet", "manifest.json")
_MADE += ("record.json", "findings.json", "report.html", "report-external.html")
KIND = Kind(
    what="release run",
    vault="vault",
    own=frozenset(f"vault/{name}" for name in _MADE),
    scratch=("vault/work", "vault/staging"),
    stale=("release", "vault/refused"),
)


@dataclass(frozen=True)
class Places:
    """The places of one run."""

    run: RunFolder

    @property
    def release(self) -> Path:
        """What may leave."""
        return self.run.root / "release"

    @property
    def vault(self) -> Path:
        """What never does."""
        return self.run.vault

    @property
    def work(self) -> Path:
        """Scratch text; removed at exit."""
        return self.vault / "work"

    @property
    def staging(self) -> Path:
        """The release while it is being made."""
        return self.vault / "staging"

    @property
    def refused(self) -> Path:
        """Where a release with a test seed goes instead."""
        return self.vault / "refused"
