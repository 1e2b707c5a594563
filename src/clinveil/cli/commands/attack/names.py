"""`clinveil attack names`: Recover full names from word vectors, by nearest pairs (paper B)."""

from __future__ import annotations

from clinveil.attacks.vectors.names import Names
from clinveil.cli.attack_command import attack_command
from clinveil.cli.command import register

TITLE = "names in {vectors} (seed {seed}; lower is safer)"
register(attack_command("names", Names, TITLE))
