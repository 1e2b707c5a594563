"""`clinveil prepare`: Make the data sets of the papers, and other forms of spans, from notes that you have."""

from __future__ import annotations

from clinveil.cli.groups import Group, members_of

HELP = "Make the data sets of the papers, and other forms of spans, from notes that you have."
Group("prepare", HELP, members_of("prepare"))
