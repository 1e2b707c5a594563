"""`clinveil attack scenario`: Predict diagnoses of named patients from word vectors (paper B)."""

from __future__ import annotations

from clinveil.attacks.vectors.scenario import Scenario
from clinveil.cli.attack_command import attack_command
from clinveil.cli.command import register

TITLE = "diagnoses predicted from {vectors} (seed {seed}; lower is safer)"
register(attack_command("scenario", Scenario, TITLE, optional=("counts",)))
