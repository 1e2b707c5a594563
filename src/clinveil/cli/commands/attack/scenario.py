"""`clinveil attack scenario`: Name target diagnoses for each name, farthest and nearest, beside chance (paper B)."""

from __future__ import annotations

from clinveil.attacks.vectors.scenario import Scenario
from clinveil.cli.attack_command import attack_command
from clinveil.cli.command import register

TITLE = "diagnoses named from {vectors} (seed {seed}; lower is safer)"
register(attack_command("scenario", Scenario, TITLE, optional=("counts",)))
