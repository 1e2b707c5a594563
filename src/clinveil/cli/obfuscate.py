"""`clinveil obfuscate`: replace every token of notes by a random near neighbour (paper A, Algorithm 1)."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clinveil.channel.settings import ChannelSettings
from clinveil.cli.options import Out, Vault, settings_command
from clinveil.cli.progress import say as say_aloud
from clinveil.cli.progress import say_unless
from clinveil.core.outputs import Maker
from clinveil.core.settings import FORCE, KEEP, LABEL, QUIET, SEED, WORKERS, NotesSettings, Settings, group
from clinveil.vectors.settings import VectorSettings

if TYPE_CHECKING:
    import pyarrow as pa

    from clinveil.channel.apply import Obfuscated
    from clinveil.channel.channel import Channel
    from clinveil.channel.tally import Tally
    from clinveil.core.keys import Key
    from clinveil.corpus.open import NotesCorpus
    from clinveil.vectors.table import Vectors

app = typer.Typer(add_completion=False)
MAKER, VAULT_MAKER = Maker("obfuscate"), Maker("obfuscate --vault")
TEST_SEED = "TEST SEED: not for release"
MANIFEST = "manifest.json"
MOST_FAILED = 0.01  # share of the notes
README = """The secrets of a run of `clinveil obfuscate`. SECRET: none of this may leave.

key.bin        every draw comes from it
vectors/       the word vectors, if they were trained on these notes
neighbours/    the nearest words of each word
channel/       P(output | input): whoever has it can undo much of the obfuscation
manifest.json  what was run, and counts of tokens; no note text
"""


class ObfuscateSettings(Settings):
    """Everything that `clinveil obfuscate` can be told."""

    channel: ChannelSettings = group(ChannelSettings)
    vectors: VectorSettings = group(VectorSettings)
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    keep: tuple[str, ...] = KEEP
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE


@dataclass
class _Run:
    """What one run works with."""

    settings: ObfuscateSettings
    corpus: NotesCorpus
    key: Key
    vault: Path
    imported: Path | None
    notes: dict[str, Any] = field(default_factory=dict)  # for the manifest


@settings_command(app, ObfuscateSettings, name="obfuscate")
def obfuscate(
    settings: ObfuscateSettings,
    notes: Annotated[Path, typer.Argument(help="Notes: a file or a folder.")],
    out: Out,
    vectors: Annotated[Path | None, typer.Option("--vectors", help="Word vectors (default: train on NOTES).")] = None,
    vault: Vault = None,
) -> None:
    """Replace every token of notes by a random near neighbour; ids and kept columns stay as they are."""
    from clinveil.core.files import default_vault, locked, private_folder, whole_pair
    from clinveil.core.keys import Key
    from clinveil.corpus.open import open_corpus

    safe = vault or default_vault(out)
    _refuse_places(notes, out, safe, vectors, force=settings.force)
    os.umask(0o077)
    say = say_unless(settings.quiet)
    corpus = open_corpus(notes, settings.notes, label=settings.label, keep=settings.keep)
    if corpus.columns.patient_id is None:
        say("no patient column: each note counts as a patient of its own")
    key = Key.generate() if settings.seed is None else Key.from_seed(settings.seed)
    # Of two runs at once, the vault of one could end beside the notes of the other.
    alone = locked(safe.with_name(f".{safe.name}.lock"), of=safe)
    both = whole_pair(safe, out, force=settings.force, vault_maker=VAULT_MAKER, maker=MAKER)
    with alone, both as (secret_part, part):
        run = _Run(settings, corpus, key, private_folder(secret_part), vectors)
        channel = _channel(run, say)
        tally = _write(run, channel, part, out)
        _refuse_if_many_failed(tally)
        _keep(run, tally)
    for line in _lines(tally):
        say(line)
    if settings.seed is not None:
        say_aloud(TEST_SEED)


def _refuse_places(notes: Path, out: Path, vault: Path, vectors: Path | None, *, force: bool) -> None:
    """Raise UsageError where the run would destroy what it reads, or anything but an earlier run's OUT and vault."""
    from clinveil.core.files import refuse_existing, refuse_nested

    refuse_nested(OUT=out, the_vault=vault, NOTES=notes)
    refuse_nested(OUT=out, the_vault=vault, **{"--vectors": vectors})
    for place, maker in ((out, MAKER), (vault, VAULT_MAKER)):
        refuse_existing(place, force=force, maker=maker)


def _channel(run: _Run, say: Callable[[str], None]) -> Channel:
    """The channel, trained or from the vectors given; it and what it was made from go to the vault."""
    from clinveil.channel.build import build_channel
    from clinveil.channel.files import channel_digest, save_channel
    from clinveil.core.files import remove
    from clinveil.vectors.count import count_words
    from clinveil.vectors.files import load_vectors
    from clinveil.vectors.neighbours import save_neighbours

    scratch, threads = run.vault / "scratch", run.settings.workers
    try:
        vectors = load_vectors(run.imported) if run.imported else _train(run, scratch, say)
        counts = count_words(run.corpus, scratch) if vectors.patients is None else None
    finally:
        remove(scratch)
    channel, table = build_channel(vectors, run.settings.channel, key=run.key, threads=threads, counts=counts)
    save_neighbours(table, run.vault / "neighbours")
    save_channel(channel, run.vault / "channel")
    how = f"N = {run.settings.channel.n}" if run.settings.channel.mechanism == "neighbours" else channel.mechanism
    say(f"{len(vectors)} words, {int(channel.eligible.sum())} of them may come out; {how}")
    for line in _noise_lines(channel):
        say(line)
    determinism = vectors.meta.get("determinism")
    run.notes |= {"mechanism": channel.mechanism, "parameters": dict(channel.parameters)}
    run.notes |= {"channel_sha256": channel_digest(channel), "recall": table.recall, "determinism": determinism}
    return channel


def _noise_lines(channel: Channel) -> Iterator[str]:
    """What a user needs to choose the size of the noise, and what the compiled channel does not promise."""
    said = channel.parameters
    if "unchanged" not in said:
        return
    error, missing = said["mc_se_unchanged_mean"], said["mc_missing_mass"]
    name = "epsilon" if channel.mechanism == "laplace" else "sigma"
    length = f"{name} {said[name]:.4g}: noise of mean length {said['expected_radius']:.3g}"
    yield f"{length}, where the nearest word is {_distance(channel)} away"
    yield f"{said['unchanged']:.1%} of the words come out as they are (Monte Carlo error {error:.2%} a word)"
    yield f"no epsilon is claimed for this channel: outputs of {missing:.0%} in all are missing from its rows"


def _distance(channel: Channel) -> str:
    tokens, types = (channel.parameters[f"nearest_distance_{of}"] for of in ("tokens", "words"))
    return f"{tokens:.3g} (median of words as often as they occur; {types:.3g} over different words)"


def _train(run: _Run, scratch: Path, say: Callable[[str], None]) -> Vectors:
    from clinveil.vectors.files import save_vectors
    from clinveil.vectors.train import train

    given = run.settings.seed
    seed = secrets.randbelow(2**32) if given is None else given
    say(f"training {run.settings.vectors.algorithm} vectors, seed {seed}")
    vectors = train(run.corpus, run.settings.vectors, seed=seed, workers=run.settings.workers, scratch=scratch)
    save_vectors(vectors, run.vault / "vectors")
    run.notes["training_seed"] = seed
    return vectors


def _write(run: _Run, channel: Channel, part: Path, out: Path) -> Tally:
    """One file where OUT has a known suffix; else a folder, of .txt where the notes were one, or with one file."""
    from clinveil.channel.apply import Obfuscator, obfuscate_batches
    from clinveil.channel.tally import Tally
    from clinveil.corpus.file_format import suffix_of
    from clinveil.corpus.write import write_corpus
    from clinveil.scale import threads

    how, path, suffix = run.settings, part, suffix_of(out) or run.corpus.suffix
    if not suffix_of(out) and run.corpus.suffix:
        part.mkdir(mode=0o700)
        path = part / f"notes{suffix}"
    tallies = [Tally()]
    obfuscator = Obfuscator(channel, run.key)
    results = obfuscate_batches(run.corpus.batches(), obfuscator, threads(how.workers))
    metadata = {"clinveil": TEST_SEED} if run.key.test_seed is not None else None
    write_corpus(_tallied(results, tallies), path, run.corpus.columns, suffix, metadata=metadata)
    return tallies[0]


def _tallied(results: Iterator[Obfuscated], tallies: list[Tally]) -> Iterator[pa.RecordBatch]:
    for result in results:
        tallies[0] += result.tally
        yield result.batch


def _refuse_if_many_failed(tally: Tally) -> None:
    from clinveil.core.errors import GateError

    failed = sum(tally.skipped.values())
    if failed > MOST_FAILED * tally.read:
        reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(tally.skipped.items()))
        raise GateError(f"{failed} of {tally.read} notes cannot be written: {reasons}; nothing was written")


def _keep(run: _Run, tally: Tally) -> None:
    """The key, and what was run, into the vault."""
    from importlib.metadata import version

    from clinveil.core.files import private_text

    run.key.save(run.vault / "key.bin")
    private_text(run.vault / "README.txt", README)
    manifest = {
        "schema": "clinveil.obfuscate/1",
        "secret": True,
        "version": version("clinveil"),
        **({"warning": TEST_SEED} if run.key.test_seed is not None else {}),
        "settings": run.settings.flat({"workers", "quiet", "force"}),
        "key_commitment": run.key.commitment,
        "vectors": run.imported.name if run.imported else "trained on these notes",
        **run.notes,
        "entered_in_error": sum(run.corpus.skipped.values()),
        "tokens": tally.as_dict(),
    }
    private_text(run.vault / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def _lines(tally: Tally) -> Iterator[str]:
    """The tally for people."""
    yield f"notes    {tally.notes} written of {tally.read} read"
    for reason, n in sorted(tally.skipped.items()):
        yield f"         {n} not written: {reason}"
    kept = f", {tally.kept_words} kept on request" if tally.kept_words else ""
    yield f"words    {tally.words}: {tally.replaced} replaced ({tally.unknown} unknown), {tally.dropped} dropped{kept}"
    yield f"numbers  {tally.numbers}: {tally.masked} masked, {tally.numbers - tally.masked} dropped"
    yield f"marks    {tally.punct}: {tally.copied} copied, {tally.punct - tally.copied} dropped; others {tally.other}"
    yield f"released {tally.released} tokens, {tally.self_replaced} of them the word that stood there"
