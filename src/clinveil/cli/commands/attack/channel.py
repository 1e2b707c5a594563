"""`clinveil attack channel`: Compute the exact disclosure of a channel, for one word without context."""

from __future__ import annotations

from clinveil.attacks.channel.channel_figures import ChannelFigures
from clinveil.cli.attack_command import attack_command
from clinveil.cli.command import register

TITLE = "exact figures of {channel} (seed {seed}; one draw, without context)"
OPTIONAL = ("prior", "known", "near")
register(attack_command("channel", ChannelFigures, TITLE, optional=OPTIONAL, first="channel"))
