"""Base of the tasks that obfuscate one part file, and linking of their results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from shutil import copyfile
from typing import Any

from clinveil.channel.apply import Obfuscator
from clinveil.channel.files import load_channel
from clinveil.channel.policy import Policy
from clinveil.core.keys import Key
from clinveil.core.runfolder import KEY
from clinveil.corpus.open import NotesCorpus


@dataclass(frozen=True)
class PartDraw:
    """Obfuscation of one part file; subclasses of it are `scale.tasks.Work`.

    Attributes:
        part: the part as it enters the channel. entered: hash of everything that it depends on.
        vault: folder of key and channel. channel: digest of the channel. commitment: of the key.
    """

    part: NotesCorpus = field(repr=False)
    entered: str
    vault: Path
    channel: str
    policy: Policy
    commitment: str

    @property
    def title(self) -> str:
        """Description for progress messages."""
        return f"{self.part.name} written"

    def identity(self) -> Mapping[str, Any]:
        """Return hashes of part, channel and key."""
        identity = {"part": self.entered, "columns": asdict(self.part.columns), "channel": self.channel}
        return identity | {"policy": asdict(self.policy), "key": self.commitment}

    def at_hand(self, *, align: bool = False) -> tuple[Obfuscator, Key]:
        """Return obfuscator and key, loaded from the vault."""
        return _at_hand(self.vault, self.policy, self.channel, self.commitment, align)


@lru_cache(maxsize=1)
def _at_hand(vault: Path, policy: Policy, channel: str, commitment: str, align: bool) -> tuple[Obfuscator, Key]:
    """Load once per process; the digests are part of the cache key."""
    key = Key.load(vault / KEY)
    return Obfuscator(load_channel(vault / "channel", policy), key, align=align), key


def link(source: Path, target: Path) -> None:
    """Create a hard link, or a copy if the file system does not support hard links."""
    try:
        os.link(source, target)
    except OSError:
        copyfile(source, target)
