"""`clinveil evaluate`: Measure the utility of protected notes or of vectors trained on them."""

from __future__ import annotations

from clinveil.cli.evaluate_command import EvaluateCommands
from clinveil.cli.groups import PACKAGE, Group

HELP = "Measure the utility of protected notes or of vectors trained on them."
Group("evaluate", HELP, EvaluateCommands("evaluate command", f"{PACKAGE}.evaluate"))
