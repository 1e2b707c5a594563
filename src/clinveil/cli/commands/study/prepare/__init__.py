"""`clinveil study prepare`: Make the data sets of the papers from your notes."""

from __future__ import annotations

from clinveil.cli.groups import Group, members_of

HELP = "Make the data sets of the papers from your notes."
Group("study prepare", HELP, members_of("study prepare"))
