"""The run of `clinveil obfuscate`: writes notes, and vectors, channel and key to a vault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from clinveil.channel.apply import Obfuscated, Obfuscator, obfuscate_batches
from clinveil.channel.channel import Channel
from clinveil.channel.run_parts import obfuscate_parts
from clinveil.channel.settings import ObfuscateSettings
from clinveil.channel.tally import Tally
from clinveil.channel.vault import Run, keep, learn, refuse_failures
from clinveil.core.atomic import atomic_pair
from clinveil.core.files import Maker, default_vault, locked, private_folder, refuse_places
from clinveil.core.keys import TEST_SEED, Key
from clinveil.core.progress import track
from clinveil.core.types import Say
from clinveil.corpus.corpus import NO_PATIENTS
from clinveil.corpus.file_format import suffix_of
from clinveil.corpus.open import open_corpus
from clinveil.corpus.part_facts import as_parts
from clinveil.corpus.part_files import part_files
from clinveil.corpus.write import place_in, write_corpus
from clinveil.scale.executor import opened_for

MAKER, VAULT_MAKER = Maker("obfuscate"), Maker("obfuscate --vault")


def obfuscate_notes(
    notes: Path,
    out: Path,
    settings: ObfuscateSettings,
    *,
    say: Say,
    vectors: Path | None = None,
    vault: Path | None = None,
) -> Tally:
    """Replace every token of the notes by a random near neighbour (paper A, Algorithm 1); return the token counts.

    Args:
        vectors: word vectors; None: train on the notes.
        vault: folder of key, vectors, channel and manifest; None: OUT.vault.

    Raises:
        UsageError: invalid locations or settings. InputError: invalid notes or vectors.
        GateError: more than 1 % of the notes cannot be written; then nothing is written.
    """
    settings.vectors.refuse_beside(vectors)
    safe, force = vault or default_vault(out), settings.force
    places = {"NOTES": notes, "--vectors": vectors, **settings.vectors.places()}
    maker = (
        None if part_files(notes) and not suffix_of(out) else VAULT_MAKER
    )  # for part files, the vault is a run folder
    refuse_places(out, MAKER, force=force, vault=safe, vault_maker=maker, read=places)
    corpus = open_corpus(notes, settings.notes, label=settings.label, keep=settings.keep)
    if as_parts(corpus, out):
        return obfuscate_parts(corpus, out, settings, MAKER, say=say, vectors=vectors, vault=safe)
    if corpus.columns.patient_id is None:
        say(NO_PATIENTS)
    key = Key.generate() if settings.seed is None else Key.from_seed(settings.seed)
    # Without a lock, two parallel runs could combine the vault of one with the notes of the other.
    lock = locked(safe.with_name(f".{safe.name}.lock"), of=safe)
    with lock, atomic_pair(safe, out, force=force, vault_maker=VAULT_MAKER, maker=MAKER) as (secret_part, part):
        run = Run(settings, corpus, key, private_folder(secret_part), vectors, say)
        tally = _write(run, learn(run), *place_in(part, out, corpus.suffix))
        refuse_failures(tally)
        keep(run, tally)
    return tally


def _write(run: Run, channel: Channel, path: Path, suffix: str) -> Tally:
    tallies = [Tally()]
    metadata = {"clinveil": TEST_SEED} if run.key.test_seed is not None else None
    with opened_for(run.settings, threaded=True) as over:
        results = obfuscate_batches(run.corpus.batches(), Obfuscator(channel, run.key), over)
        shown = track(results, "notes", run.say, size=lambda result: result.batch.num_rows)
        write_corpus(_tallied(shown, tallies), path, run.corpus.columns, suffix, metadata=metadata)
    return tallies[0]


def _tallied(results: Iterator[Obfuscated], tallies: list[Tally]) -> Iterator[pa.RecordBatch]:
    for result in results:
        tallies[0] += result.tally
        yield result.batch


def lines_of(tally: Tally) -> Iterator[str]:
    """Yield the token counts as lines of text."""
    yield f"notes    {tally.notes} written of {tally.read} read"
    for reason, n in sorted(tally.skipped.items()):
        yield f"         {n} not written: {reason}"
    kept = f", {tally.kept_words} kept on request" if tally.kept_words else ""
    twice = f", {tally.doubled} written twice" if tally.doubled else ""
    fates = f"{tally.replaced} replaced ({tally.unknown} unknown), {tally.dropped} dropped{kept}{twice}"
    yield f"words    {tally.words}: {fates}"
    yield f"numbers  {tally.numbers}: {tally.masked} masked, {tally.numbers - tally.masked} dropped"
    yield f"marks    {tally.punct}: {tally.copied} copied, {tally.punct - tally.copied} dropped; others {tally.other}"
    yield f"released {tally.released} tokens, {tally.self_replaced} of them equal to their source word"
