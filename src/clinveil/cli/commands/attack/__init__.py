"""`clinveil attack`: Attack notes, word vectors or language models before they are released."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import create_model

from clinveil.api import INPUTS, AttackInput, NoteRoles, context_of, inputs_of
from clinveil.attacks import Attack, attacks
from clinveil.cli.command import EITHER, Command, Run
from clinveil.cli.groups import Commands, Entry, Group, Parsed
from clinveil.cli.options import MeasureSettings
from clinveil.cli.progress import say
from clinveil.core import WORKERS, group

# Attacks that a release runs, or that are part of another command.
OF_RELEASES = frozenset({"identifiers", "uniqueness", "adversary-suite"})


def attack_command(name: str, attack: type[Attack]) -> Command[MeasureSettings]:
    """Return the command of a registered attack."""
    given = inputs_of(attack) | {
        field: INPUTS[field] for field in INPUTS if field in attack.optional
    }
    settings: type[MeasureSettings] = create_model(
        f"{attack.__name__}Command",
        __base__=MeasureSettings,
        attack=(attack, group(attack)),
        workers=(int, WORKERS),
    )

    def run_it(run: Run[Any], **paths: Any) -> None:
        how = run.settings
        held = {
            field: one.read(paths[one.name], NoteRoles(how.notes))
            for field, one in given.items()
            if paths[one.name]
        }
        if "counts" in attack.optional - held.keys() and any(
            one.counts is None for one in held["vectors"]
        ):
            say(
                "clinveil: vectors without word counts: name frequencies are unknown (pass --notes)"
            )
        context = context_of(held, workers=how.workers, say=run.say)
        findings = how.attack(context, run.rng())
        first = next(iter(paths.values()))
        files = ", ".join(path.name for path in (first if isinstance(first, list) else [first]))
        run.show(findings, f"{name}: {files} (seed {run.seed}; lower is safer)")

    run_it.__doc__ = attack.help()
    run_it.__signature__ = _signature(given, attack.optional)  # type: ignore[attr-defined]
    return Command(f"attack {name}", run_it, settings, flags="seed", findings=True)


def _signature(given: Mapping[str, AttackInput], optional: frozenset[str]) -> Signature:
    """Return the parameters: required inputs are arguments and options, the others are options.

    With several vectors, these are the only arguments.
    """
    parameters = [Parameter("run", Parameter.POSITIONAL_OR_KEYWORD)]
    for field, one in given.items():
        kind: Any = list[Path] if one.several else Path | None if field in optional else Path
        argument = typer.Argument(help=one.help, metavar=one.name.upper())
        default = None if field in optional else Parameter.empty
        annotation: Any
        if one.several:
            annotation = Annotated[kind, argument]
        elif field in optional or one.options or any(known.several for known in given.values()):
            option = typer.Option(*(one.options or [_flag(one.name)]), help=one.help)
            annotation = Annotated[kind, option]
        else:
            annotation = Annotated[kind, argument, EITHER]
        parameters.append(
            Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    return Signature(parameters)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


class AttackCommands(Commands):
    """The commands below, and a generated command for each other attack."""

    def names(self) -> tuple[str, ...]:
        """Return all names."""
        known = {*self.paths, *attacks.names()} - OF_RELEASES
        return (*ORDER, *sorted(known - {*ORDER}))

    def _load(self, name: str) -> Parsed:
        if name in self.paths:
            return super()._load(name)
        return attack_command(name, attacks.get(name))


ORDER = (
    "inversion",
    "linkage",
    "inference",
    "names",
    "association",
    "copies",
    "leaveout",
    "membership",
)
GROUP = Group(
    "Attack notes, word vectors or language models before release; compare with chance and a"
    " control.",
    AttackCommands(
        "attack command",
        {
            "canaries": Entry(
                "attack.canaries:canaries",
                "Plant invented secrets in a copy of the training notes and measure exposure.",
            ),
            "inference": Entry(
                "attack.inference:inference",
                "Predict an attribute of patients from their released notes.",
            ),
            "inversion": Entry(
                "attack.inversion:inversion",
                "Measure how many released words an attacker recovers.",
            ),
            "leaveout": Entry(
                "attack.leaveout:leaveout",
                "Measure how much predictions depend on one patient (S-PDTP, paper C).",
            ),
            "linkage": Entry(
                "attack.linkage:linkage",
                "Link released notes to patients of whom some text is known.",
            ),
            "membership": Entry(
                "attack.membership:membership",
                "Infer which notes a language model was trained on.",
            ),
        },
    ),
)
