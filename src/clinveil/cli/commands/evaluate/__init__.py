"""`clinveil evaluate`: Measure what protected notes, or vectors trained on them, are still good for."""

from __future__ import annotations

from clinveil.cli.groups import Group, members_of

HELP = "Measure what protected notes, or vectors trained on them, are still good for."
MEMBERS = ("transfer", "similarity", "classification", "nli", "perplexity", "casing", "deidentification", "agreement")
Group("evaluate", HELP, members_of("evaluate", *MEMBERS))
