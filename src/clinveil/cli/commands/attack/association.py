"""`clinveil attack association`: Test whether names are closer to their bearers' diagnoses than to others'."""

from __future__ import annotations

from clinveil.attacks.vectors.association import Association
from clinveil.cli.attack_command import attack_command
from clinveil.cli.command import register

TITLE = "names and diagnoses in {vectors} (seed {seed})"
register(attack_command("association", Association, TITLE, optional=("counts",)))
