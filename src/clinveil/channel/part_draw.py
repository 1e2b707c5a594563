"""What every task that puts a part of the notes through a channel has in common, and how its result gets its place."""

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
    """One part through the channel; a kind of `scale.tasks.Work`, but for the work itself.

    Attributes:
        part: as it enters the channel. entered: hash of all that it depends on.
        vault: where a worker finds key and channel. channel: its digest. commitment: of the key.
    """

    part: NotesCorpus = field(repr=False)
    entered: str
    vault: Path
    channel: str
    policy: Policy
    commitment: str

    @property
    def title(self) -> str:
        """What it does, for people."""
        return f"{self.part.name} written"

    def identity(self) -> Mapping[str, Any]:
        """The part, the channel, and the key."""
        told = {"part": self.entered, "columns": asdict(self.part.columns), "channel": self.channel}
        return told | {"policy": asdict(self.policy), "key": self.commitment}

    def at_hand(self, *, align: bool = False) -> tuple[Obfuscator, Key]:
        """What draws the words, and the key, from the vault."""
        return _at_hand(self.vault, self.policy, self.channel, self.commitment, align)


@lru_cache(maxsize=1)
def _at_hand(vault: Path, policy: Policy, channel: str, commitment: str, align: bool) -> tuple[Obfuscator, Key]:
    """Made once a process; the digests tell whether it is still the one of these places."""
    key = Key.load(vault / KEY)
    return Obfuscator(load_channel(vault / "channel", policy), key, align=align), key


def link(source: Path, target: Path) -> None:
    """A file under a second name, or copied where the disk has no such names."""
    try:
        os.link(source, target)
    except OSError:
        copyfile(source, target)
