"""`clinveil study`: Repeat a paper's study on your own notes."""

from __future__ import annotations

from clinveil.cli.groups import Group, members_of

HELP = "Repeat a paper's study on your own notes; each table also shows the paper's numbers."
Group("study", HELP, members_of("study", "jmir-2020", "clinicalnlp-2019"))
