"""Store a channel as a private folder: words.arrow, four arrays, meta.json, and a context model."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather

from clinveil.channel.channel import Channel
from clinveil.channel.policy import WritingPolicy
from clinveil.core import InputError, atomic, private_folder, save_array
from clinveil.lm import load_context, save_context

SCHEMA = "clinveil.channel/1"
CONTEXT = "context"
ARRAYS = ("indptr", "indices", "probabilities", "eligible")


def save_channel(channel: Channel, path: Path) -> None:
    """Write a channel atomically; it is as secret as the vectors. Raises UsageError if the path
    exists.
    """
    with atomic(path) as folder:
        private_folder(folder)
        table = pa.table({"word": pa.array(channel.words, pa.string())})
        feather.write_feather(table, folder / "words.arrow", compression="zstd")
        for name in ARRAYS:
            save_array(folder / f"{name}.npy", getattr(channel, name))
        if channel.context is not None:
            save_context(channel.context, folder / CONTEXT)
        (folder / "meta.json").write_text(json.dumps(_meta(channel), indent=1), encoding="utf-8")


def load_channel(path: Path, policy: WritingPolicy | None = None) -> Channel:
    """Read a channel; its policy is not stored and is passed separately.

    Raises InputError if the folder does not contain a valid channel.
    """
    try:
        meta = json.loads((path / "meta.json").read_text(encoding="utf-8"))
        words = feather.read_table(path / "words.arrow")["word"].to_pylist()
        arrays = {name: np.load(path / f"{name}.npy", allow_pickle=False) for name in ARRAYS}
        return Channel(
            words,
            indptr=arrays["indptr"],
            indices=arrays["indices"],
            probabilities=arrays["probabilities"],
            eligible=arrays["eligible"],
            mechanism=meta["mechanism"],
            parameters=meta["parameters"],
            kept=frozenset(meta["kept"]),
            policy=policy or WritingPolicy(),
            context=load_context(path / CONTEXT) if (path / CONTEXT).exists() else None,
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError, pa.ArrowException) as error:
        # Messages of `Channel`, and of NumPy about shapes; others may contain a word.
        why = f": {error}" if type(error) is ValueError else ""
        raise InputError(
            f"not a channel folder{why}", where=path.name, hint="create it again"
        ) from None


def channel_digest(channel: Channel) -> str:
    """Return the SHA-256 in hex of words, matrix, floor and mechanism, as in the manifest."""
    digest = hashlib.sha256(
        json.dumps([_meta(channel), list(channel.words)], sort_keys=True).encode()
    )
    for name in ARRAYS:
        digest.update(np.ascontiguousarray(getattr(channel, name)).data)
    if channel.context is not None:
        digest.update(json.dumps([channel.context.label, channel.context.labels]).encode())
        for _, array in channel.context.arrays():
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _meta(channel: Channel) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "secret": True,
        "mechanism": channel.mechanism,
        "parameters": dict(channel.parameters),
        "kept": sorted(channel.kept),
    }
