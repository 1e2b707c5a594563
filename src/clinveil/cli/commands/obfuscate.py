"""`clinveil obfuscate`: Replace every word of notes with a random similar word."""

from __future__ import annotations

from functools import partial

from clinveil.channel.run import lines_of, obfuscate_notes
from clinveil.channel.settings import ObfuscateSettings
from clinveil.cli.command import Run, command
from clinveil.cli.options import NotesOrQuery, OutOrStore, Vault, VectorsGiven
from clinveil.cli.progress import say
from clinveil.core.keys import TEST_SEED
from clinveil.core.runfolder import run_hash
from clinveil.core.upload import through


@command("obfuscate", ObfuscateSettings, flags="text patient keep n min_patients workers seed force quiet")
def obfuscate(
    run: Run[ObfuscateSettings],
    notes: NotesOrQuery,
    out: OutOrStore,
    vectors: VectorsGiven = None,
    vault: Vault = None,
) -> None:
    """Replace every word of notes with a random similar word; ids and kept columns do not change."""
    how = run.settings
    make = partial(obfuscate_notes, notes, settings=how, vectors=vectors, vault=vault, say=run.say)
    asked = partial(run_hash, how, notes, vectors, str(out))
    tally = through(out, vault, make, asked, command="obfuscate", force=how.force, say=run.say)
    for line in lines_of(tally) if tally else ():
        run.say(line)
    if run.settings.seed is not None:
        say(TEST_SEED)
