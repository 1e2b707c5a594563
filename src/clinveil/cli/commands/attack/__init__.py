"""`clinveil attack`: Attack what is to be released: word vectors, language models, synthetic notes."""

from __future__ import annotations

from clinveil.cli.attack_command import AttackCommands
from clinveil.cli.groups import PACKAGE, Group

ORDER = ("inversion", "linkage", "inference", "names", "association", "scenario", "copies", "leaveout", "membership")
HELP = "Attack what is to be released, with the truth at hand; prints findings beside chance and a control."
Group("attack", HELP, AttackCommands("attack command", f"{PACKAGE}.attack", first=ORDER))
