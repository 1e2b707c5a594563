"""`clinveil attack`: Attack notes, word vectors or language models before they are released."""

from __future__ import annotations

from clinveil.cli.attack_command import AttackCommands
from clinveil.cli.groups import PACKAGE, Group

ORDER = ("inversion", "linkage", "inference", "names", "association", "scenario", "copies", "leaveout", "membership")
HELP = "Attack notes, word vectors or language models before release; compare with chance and a control."
Group("attack", HELP, AttackCommands("attack command", f"{PACKAGE}.attack", first=ORDER))
