"""`clinveil attack`: the group of attacks that run on their own; one file an attack."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

# name: file of cli/. The files import their rooms only when they run, so the group's help page may import them all.
ATTACKS = {
    "names": "names",
    "association": "association",
    "scenario": "scenario",
    "copies": "copies",
    "leaveout": "leaveout",
    "membership": "membership",
    "canaries": "canaries",
}


class _Attacks(TyperGroup):
    """The attacks, in the order of the table."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All attack names."""
        return list(ATTACKS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The attack of one name, imported now."""
        if cmd_name not in ATTACKS:
            return None
        return typer.main.get_command(import_module(f"clinveil.cli.attack.{ATTACKS[cmd_name]}").app)


app = typer.Typer(
    cls=_Attacks,
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    help="Attack what is to be released, with the truth at hand; prints findings beside chance and a control.",
)


@app.callback()
def _attack() -> None:
    pass
