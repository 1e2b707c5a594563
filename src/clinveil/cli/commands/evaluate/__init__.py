"""`clinveil evaluate`: Measure the utility of protected notes or of vectors trained on them."""

from __future__ import annotations

from clinveil.cli.groups import Group, members_of

HELP = "Measure the utility of protected notes or of vectors trained on them."
MEMBERS = ("transfer", "similarity", "classification", "nli", "perplexity", "casing", "deidentification", "agreement")
Group("evaluate", HELP, members_of("evaluate", *MEMBERS))
