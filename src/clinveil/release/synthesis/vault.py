"""The vault of a run: key, model and what the run was asked; it survives a kill, and a failed replacement."""

from __future__ import annotations

from clinveil.core.keys import Key
from clinveil.core.runfolder import Kind
from clinveil.release.synthesis.trained import STATE

MANIFEST = "manifest.json"
_IN_MODEL = ("SECRET.txt", "vocabulary.json", "counts.npy", "model.safetensors", "model.json")
README = """The secrets of a run of `clinveil synthesize`. SECRET: none of this may leave.

key.bin        every draw comes from it
model/         the language model; it remembers the notes that it was trained on
manifest.json  what was run, counts, gates and findings; no note text
"""
KIND = Kind(
    what="vault of this command",
    state="run.json",
    own=frozenset({MANIFEST, STATE, "model/", *(f"model/{name}" for name in _IN_MODEL)}),
    notes={"README.txt": README},
)


def training_seed(key: Key) -> int:
    """The seed of split and training: the public one, or one that is as secret as the key."""
    return key.digest("training seed") % 2**31 if key.test_seed is None else key.test_seed
