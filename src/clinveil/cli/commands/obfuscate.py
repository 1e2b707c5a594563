"""`clinveil obfuscate`: Replace every token of notes by a random near neighbour."""

from __future__ import annotations

from clinveil.channel.run import lines_of, obfuscate_notes
from clinveil.channel.settings import ObfuscateSettings
from clinveil.cli.command import Run, command
from clinveil.cli.options import Notes, Out, Vault, VectorsGiven
from clinveil.cli.progress import say
from clinveil.core.keys import TEST_SEED


@command("obfuscate", ObfuscateSettings)
def obfuscate(
    run: Run[ObfuscateSettings],
    notes: Notes,
    out: Out,
    vectors: VectorsGiven = None,
    vault: Vault = None,
) -> None:
    """Replace every token of notes by a random near neighbour; ids and kept columns stay as they are."""
    tally = obfuscate_notes(notes, out, run.settings, vectors=vectors, vault=vault, say=run.say)
    for line in lines_of(tally):
        run.say(line)
    if run.settings.seed is not None:
        say(TEST_SEED)
