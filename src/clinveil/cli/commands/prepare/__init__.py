"""`clinveil prepare`: Make the data sets of the papers from notes that you have."""

from __future__ import annotations

from clinveil.cli.groups import Group, members_of

Group("prepare", "Make the data sets of the papers from notes that you have.", members_of("prepare"))
