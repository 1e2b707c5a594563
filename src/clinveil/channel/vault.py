"""The vault of `clinveil obfuscate`: key, vectors, channel and manifest."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clinveil.channel.build import build_channel, mechanism_of
from clinveil.channel.channel import Channel
from clinveil.channel.files import channel_digest, save_channel
from clinveil.channel.settings import ObfuscateSettings
from clinveil.channel.tally import Tally
from clinveil.core.errors import GateError
from clinveil.core.files import private_text, remove
from clinveil.core.keys import TEST_SEED, Key
from clinveil.core.runfolder import FREE, KEY
from clinveil.core.types import Say
from clinveil.corpus.open import OpenedCorpus, PartedCorpus
from clinveil.scale import Map, processes_later
from clinveil.vectors.count import WordCounts, count_parts, count_words
from clinveil.vectors.files import load_vectors, save_vectors
from clinveil.vectors.imported import at_hand, without_vector
from clinveil.vectors.neighbours import save_neighbours
from clinveil.vectors.table import Vectors
from clinveil.vectors.train import train

MANIFEST = "manifest.json"
MOST_FAILED = 0.01  # share of the notes
README = """Secrets of a run of `clinveil obfuscate`. SECRET: nothing in this folder may leave.

key.bin        the key of all draws
vectors/       word vectors, if they were trained on these notes
neighbours/    the nearest words of each word
channel/       P(output | input): allows an attacker to undo much of the obfuscation
manifest.json  settings and token counts; no note text
"""


@dataclass
class Run:
    """State of one run."""

    settings: ObfuscateSettings
    corpus: OpenedCorpus
    key: Key
    vault: Path
    imported: Path | None
    say: Say
    over: Map | None = None  # executor, for part files
    notes: dict[str, Any] = field(default_factory=dict)  # for the manifest


def learn(run: Run) -> Channel:
    """Build the channel from trained or given vectors; store it and its inputs in the vault."""
    scratch, settings = run.vault / "scratch", run.settings
    try:
        vectors = _given(run, run.imported, scratch) if run.imported else _train(run, scratch)
    finally:
        remove(scratch)
    channel, table = build_channel(vectors, settings.channel, key=run.key, threads=settings.workers)
    save_neighbours(table, run.vault / "neighbours")
    save_channel(channel, run.vault / "channel")
    description = mechanism_of(settings.channel).description
    run.say(f"{len(vectors)} words, {int(channel.eligible.sum())} of them eligible as outputs; {description}")
    for line in (*_noise_lines(channel), *channel.shortfalls):
        run.say(line)
    determinism = vectors.meta.get("determinism")
    run.notes |= {"mechanism": channel.mechanism, "parameters": dict(channel.parameters)}
    run.notes |= {"channel_sha256": channel_digest(channel), "recall": table.recall, "determinism": determinism}
    return channel


def _noise_lines(channel: Channel) -> Iterator[str]:
    """Yield the scale of the noise, and what the compiled channel does not guarantee."""
    measured = channel.parameters
    if "unchanged" not in measured:
        return
    error, missing = measured["mc_se_unchanged_mean"], measured["mc_missing_mass"]
    name = "epsilon" if channel.mechanism == "laplace" else "sigma"
    length = f"{name} {measured[name]:.4g}: noise of mean length {measured['expected_radius']:.3g}"
    yield f"{length}; distance to the nearest word {_distance(channel)}"
    yield f"{measured['unchanged']:.1%} of the words stay unchanged (Monte Carlo error {error:.2%} per word)"
    yield f"this channel guarantees no epsilon: outputs with {missing:.0%} of the probability are missing from its rows"


def _distance(channel: Channel) -> str:
    tokens, types = (channel.parameters[f"nearest_distance_{of}"] for of in ("tokens", "words"))
    return f"{tokens:.3g} (median over tokens; {types:.3g} over different words)"


def _given(run: Run, place: Path, scratch: Path) -> Vectors:
    """Return the given vectors, with counts of the notes if they have none."""
    counts = _counted(run, scratch)
    vectors = at_hand(load_vectors(place), counts)
    lacking, tokens = without_vector(vectors, counts)
    run.say(f"{lacking:,} words of the notes, {tokens:,} tokens, have no vector")
    return vectors


def _counted(run: Run, scratch: Path) -> WordCounts:
    if run.over is not None and isinstance(run.corpus, PartedCorpus):
        return count_parts(run.corpus.parts, scratch, run.over, run.say)
    return count_words(run.corpus, scratch, over=processes_later(run.settings.workers))


def _train(run: Run, scratch: Path) -> Vectors:
    settings = run.settings
    seed = secrets.randbelow(2**31) if settings.seed is None else settings.seed
    run.say(f"training {settings.vectors.algorithm} vectors, seed {seed}")
    options: Any = {"workers": settings.workers, "scratch": scratch, "counts": _counted(run, scratch)}
    vectors = train(run.corpus, settings.vectors, seed=seed, **options)
    save_vectors(vectors, run.vault / "vectors")
    run.notes |= {"training_seed": seed, "passes": vectors.meta.get("epochs")}
    return vectors


def refuse_failures(tally: Tally) -> None:
    """Raise GateError if more than 1 % of the notes cannot be written."""
    failed = sum(tally.skipped.values())
    if failed > MOST_FAILED * tally.read:
        reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(tally.skipped.items()))
        raise GateError(f"{failed} of {tally.read} notes cannot be written: {reasons}; nothing was written")


def keep(run: Run, tally: Tally) -> None:
    """Store key and manifest in the vault."""
    if not (run.vault / KEY).exists():
        run.key.save(run.vault / KEY)
    private_text(run.vault / "README.txt", README)
    manifest = {
        "schema": "clinveil.obfuscate/1",
        "secret": True,
        "version": version("clinveil"),
        **({"warning": TEST_SEED} if run.key.test_seed is not None else {}),
        "settings": run.settings.flat(FREE),
        "key_commitment": run.key.commitment,
        "vectors": run.imported.name if run.imported else "trained on these notes",
        **run.notes,
        "entered_in_error": sum(run.corpus.skipped.values()),
        "tokens": tally.as_dict(),
    }
    private_text(run.vault / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
