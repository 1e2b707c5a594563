"""`clinveil evaluate`: Measure the utility of protected notes or of vectors trained on them."""

from __future__ import annotations

from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from clinveil.cli.command import EITHER, Command, Run
from clinveil.cli.groups import Commands, Entry, Group, Parsed
from clinveil.cli.progress import say
from clinveil.utility import EVALUATIONS, Evaluation, EvaluationInput


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
    value: Any = shape if one.required else shape | None
    kind: Any
    if one.option == f"--{name}" and not one.many:
        kind = Annotated[value, typer.Argument(help=one.help), EITHER]
    elif one.option:
        kind = Annotated[value, typer.Option(one.option, help=one.help)]
    else:
        kind = Annotated[value, typer.Argument(help=one.help)]
    return Parameter(
        name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if one.required else None,
        annotation=kind,
    )


class EvaluateCommands(Commands):
    """A generated command for each evaluation."""

    def _load(self, name: str) -> Parsed:
        return evaluate_command(name, EVALUATIONS.get(name))


GROUP = Group(
    "Measure the utility of protected notes or of vectors trained on them.",
    EvaluateCommands(
        "evaluate command",
        {
            "transfer": Entry("", "Train on a release and test on real notes."),
            "similarity": Entry(
                "", "Compare word vectors with human scores of word pairs (papers A, C)."
            ),
            "classification": Entry(
                "", "Compare classifiers on original and protected notes (paper A)."
            ),
            "perplexity": Entry("", "Measure how well a language model predicts real notes."),
            "deidentification": Entry(
                "", "Measure recall of identifiers on gold spans or invented notes."
            ),
            "agreement": Entry(
                "", "Measure the agreement of two reviewers (clinveil review --reviewer)."
            ),
        },
    ),
)
