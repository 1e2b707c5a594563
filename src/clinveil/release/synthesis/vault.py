"""The vault of a run: key, training seed, and what the run was asked; it survives a kill, and a failed replacement."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import private_folder, private_text, remove
from clinveil.core.keys import Key
from clinveil.core.outputs import files_in, refuse_more
from clinveil.release.synthesis.trained import STATE

MANIFEST, RUN, KEY = "manifest.json", "run.json", "key.bin"
ASIDE = ".replaced"
SCHEMA = "clinveil.synthesis-run/1"
_IN_MODEL = ("SECRET.txt", "vocabulary.json", "counts.npy", "model.safetensors", "model.json")
_OWN = {MANIFEST, RUN, KEY, STATE, "README.txt", "model/", *(f"model/{name}" for name in _IN_MODEL)}
README = """The secrets of a run of `clinveil synthesize`. SECRET: none of this may leave.

key.bin        every draw comes from it
model/         the language model; it remembers the notes that it was trained on
manifest.json  what was run, counts, gates and findings; no note text
"""


@dataclass(frozen=True)
class RunVault:
    """A folder of secrets beside OUT.

    Attributes:
        asked: a hash of notes and settings. public_seed: given by the user, or None for a secret key.
    """

    path: Path
    out: Path
    asked: str
    public_seed: int | None

    @property
    def aside(self) -> Path:
        """Where the vault of a finished run waits while `--force` makes another: a name that nobody else gives."""
        return self.path.with_name(f".{self.path.name}{ASIDE}")

    @property
    def begun(self) -> bool:
        """Whether it holds anything that a run could go on from, or that tells of one."""
        return any((self.path / made).exists() for made in ("model", STATE, MANIFEST))

    def open(self, *, force: bool) -> tuple[Key, int]:
        """Key and training seed: new, or those of the same run unfinished.

        Raises:
            UsageError: something else's folder, a finished run, other settings. InputError: it is damaged.
        """
        if force:
            self._clear()
        if not (self.path / RUN).exists():
            if self.path.exists() and not _empty(self.path):
                raise UsageError("is there already, and is no vault of this command", where=self.path.name)
            return self._new()
        before = self._before(self.path)
        if (self.path / MANIFEST).exists() and self.out.exists() and not self._ours(self.aside):
            raise UsageError("is the vault of a finished run", where=self.path.name, remedy="another OUT, or --force")
        if before["asked"] == self.asked and (self.path / KEY).exists():
            own = self.public_seed
            return Key.load(self.path / KEY) if own is None else Key.from_seed(own), int(before["training_seed"])
        if self.begun:
            remedy = "give the same settings and notes to go on, or --force to start over"
            raise UsageError("an unfinished run with other settings or notes", where=self.path.name, remedy=remedy)
        self._drop()  # it failed before it had made anything
        return self._new()

    def finish(self) -> None:
        """The notes are out: what only an unfinished run needs goes, and so does the vault that this one replaces."""
        remove(self.path / STATE)
        if self._ours(self.aside):
            remove(self.aside)

    def give_up(self) -> None:
        """A key that nothing was made with goes; the vault of the run that was to be replaced comes back."""
        if not self.begun:
            self._drop()
            if self._ours(self.aside) and not self.path.exists():
                self.aside.replace(self.path)

    def _drop(self) -> None:
        """Remove what a run writes before it begins; what somebody else put beside it stays."""
        for name in (RUN, KEY, "README.txt"):
            remove(self.path / name)
        if _empty(self.path):
            self.path.rmdir()

    def _clear(self) -> None:
        """Make room for another run; the vault of notes that are still there is kept until that has succeeded."""
        if not self.path.exists() or not (self._ours(self.path) or _empty(self.path)):
            return
        refuse_more(self.path, files_in(self.path), _OWN)
        if (self.path / MANIFEST).exists() and self.out.exists() and not self.aside.exists():
            self.path.replace(self.aside)
        else:
            remove(self.path)

    def _ours(self, folder: Path) -> bool:
        try:
            return bool(self._before(folder))
        except InputError:
            return False

    def _before(self, folder: Path) -> dict[str, Any]:
        try:
            said = json.loads((folder / RUN).read_text(encoding="utf-8"))
            if said["schema"] != SCHEMA or not isinstance(said["asked"], str) or type(said["training_seed"]) is not int:
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            remedy = "bring it back from a copy, or name another --vault"
            raise InputError(f"{RUN} is damaged, or of something else", where=folder.name, remedy=remedy) from None
        return dict(said)

    def _new(self) -> tuple[Key, int]:
        key = Key.generate() if self.public_seed is None else Key.from_seed(self.public_seed)
        seed = secrets.randbelow(2**31) if self.public_seed is None else self.public_seed
        private_folder(self.path)
        # First what says whose folder it is: a stop before the key then leaves something to go on from.
        said = {"schema": SCHEMA, "asked": self.asked, "training_seed": seed}
        private_text(self.path / RUN, json.dumps(said) + "\n")
        private_text(self.path / "README.txt", README)
        key.save(self.path / KEY)
        return key, seed


def _empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())
