"""`clinveil study prepare`: Make the data sets of the papers from your notes, and convert spans."""

from __future__ import annotations

from clinveil.cli.groups import Group, members_of

HELP = "Make the data sets of the papers from your notes, and convert spans."
Group("study prepare", HELP, members_of("study prepare"))
