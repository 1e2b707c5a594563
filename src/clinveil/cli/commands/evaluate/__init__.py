"""`clinveil evaluate`: Measure the utility of protected notes or of vectors trained on them."""

from __future__ import annotations

from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from clinveil.cli.command import Command, Run
from clinveil.cli.groups import PACKAGE, Group, Parsed
from clinveil.cli.progress import say
from clinveil.core import Registry
from clinveil.utility import Evaluation, EvaluationInput
from clinveil.utility.evaluations import evaluations


def evaluate_command(name: str, kind: type[Evaluation]) -> Command[Evaluation]:
    """Return the command of an evaluation."""

    def run_it(run: Run[Evaluation], **paths: Any) -> None:
        given = {one: _read(kind.inputs[one], path) for one, path in paths.items()}
        done = run.settings(given, run.seed if "seed" in kind.model_fields else 0, run.say)
        for remark in done.remarks:
            say(remark)
        run.show(done.findings, done.title, seed=done.seed)
        for line in () if run.json else done.lines:
            typer.echo(line)

    run_it.__doc__ = kind.__doc__
    parameters = [_parameter(name, one) for name, one in kind.inputs.items()]
    run = Parameter("run", Parameter.POSITIONAL_OR_KEYWORD)
    run_it.__signature__ = Signature([run, *parameters])  # type: ignore[attr-defined]
    return Command(f"evaluate {name}", run_it, kind, flags=kind.shown, findings=True)


def _read(one: EvaluationInput, path: Any) -> Any:
    if path is None or not one.crosswalk:
        return path
    from clinveil.releases import source_ids

    return partial(source_ids, path)


def _parameter(name: str, one: EvaluationInput) -> Parameter:
    shape: Any = list[Path] if one.many else Path
    given = typer.Option(one.option, help=one.help) if one.option else typer.Argument(help=one.help)
    kind: Any = Annotated[shape if one.required else shape | None, given]
    return Parameter(
        name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if one.required else None,
        annotation=kind,
    )


class EvaluateCommands(Registry[Parsed]):
    """A generated command for each registered evaluation."""

    def names(self) -> tuple[str, ...]:
        """Return all names."""
        return tuple(dict.fromkeys((*evaluations.names(), *super().names())))

    def module(self, name: str) -> str | None:
        """Return the file of an evaluation, whose first line is the summary of its command."""
        return evaluations.module(name) or super().module(name)

    def get(self, name: str) -> Parsed:
        """Return a command. Raises UsageError with all names for an unknown one."""
        if name in evaluations.names():
            return evaluate_command(name, evaluations.get(name))
        return super().get(name)


HELP = "Measure the utility of protected notes or of vectors trained on them."
Group("evaluate", HELP, EvaluateCommands("evaluate command", f"{PACKAGE}.evaluate"))
