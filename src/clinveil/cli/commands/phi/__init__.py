"""`clinveil phi`: What the detection of identifiers is made of."""

from __future__ import annotations

from clinveil.cli.groups import Group, members_of

HELP = "What the detection of identifiers is made of."
Group("phi", HELP, members_of("phi", "train"))
