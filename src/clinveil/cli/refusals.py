"""Refuse an unknown option: name the `--set` of a setting, suggest what a mistyped name or value
meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from typer.core import TyperCommand

from clinveil.core import SIMILAR, Setting, Settings, UsageError

SYNONYMS = {
    "--type": ("--as",),
    "--output": ("--out",),
    "--output-dir": ("--out",),
    "--profile": ("--phi-profile",),
    "--policy": ("--phi-profile", "--set phi_policy"),
    "--names": ("--patients",),
    "--patient-list": ("--patients",),
    "--decisions": ("--reviewed",),
    "--public": ("--more-text",),
    "--eps": ("--epsilon",),
    "--train": ("--training",),
    "--test": ("--held-out",),
    "--control": ("--held-out",),
    "--source": ("--original",),
    "--model": ("--classifier", "--set identifiers.tagger"),
    "--marks": ("--marked",),
    "--columns": ("--keep",),
    "--text-column": ("--text",),
    "--id-column": ("--id",),
    "--note-id": ("--id",),
    "--patient-id": ("--patient",),
    "--label-column": ("--label",),
    "--silent": ("--quiet",),
    "--overwrite": ("--force",),
    "--date-shift": ("--shift",),
    "--phi": ("--phi-profile",),
    "--jobs": ("--workers",),
}
"""An option that people try -> what has its meaning here, as far as the command has it."""
ANSWERS = {
    ("compare", "--epsilon"): "with --public FILE, epsilon 8, 3 and 1 are compared",
    ("compare", "--mode"): "add a release: --setting tags=kind=deidentified,identifiers.mode=tag",
    ("compare", "--phi-profile"): "add a release: --setting"
    " narrow=kind=deidentified,identifiers.phi_profile=safe-harbor",
    ("review", "--patients"): "pass it to clinveil deidentify or clinveil validate; their OUT is"
    " reviewed",
    ("review", "--text"): "pass it to clinveil deidentify or clinveil validate; their OUT is"
    " reviewed",
    ("review", "-o"): "decisions are saved in the vault of the reviewed OUT",
    ("review", "--out"): "decisions are saved in the vault of the reviewed OUT",
    ("release", "--dry-run"): "leave out -o: the plan is printed, and nothing is written",
    ("release", "--dpia"): "after the release: clinveil report OUT --dpia",
    ("report", "--format"): "the report is HTML; print it to PDF in a browser",
}
"""Command and option -> where its meaning is found."""


def parser_class(name: str, settings: type[Settings] | None) -> type[TyperCommand]:
    """Return the class of a command's parser.

    Args:
        name: the command's, with its group.
    """

    class Parser(TyperCommand):
        """Explains unknown options."""

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            """Parse arguments. Raises UsageError for an unknown option."""
            typed = list(args)
            try:
                return super().parse_args(ctx, args)
            except Exception as error:
                option = getattr(error, "option_name", None)
                if str(getattr(error, "message", "")).startswith("Got unexpected extra argument"):
                    raise _too_many(name, error, self.params) from None
                if option is None or not hasattr(error, "possibilities"):
                    raise
                flags = [flag for parameter in self.params for flag in parameter.opts]
                raise _refusal(name, option, typed, flags, settings) from None

    return Parser


def wrong_value(message: str) -> str:
    """Return the parser's message on a wrong value, with a suggestion for a mistyped choice."""
    message = message.replace("Value error, ", "")
    typed, _, choices = message.rpartition(": ")[2].partition(" is not one of ")
    near = get_close_matches(typed.strip("'"), re.findall(r"'([^']+)'", choices), n=1)
    return f"{message} Did you mean {near[0]}?" if near else message


def _too_many(command: str, error: Any, parameters: Sequence[Any]) -> UsageError:
    """Return the error for more arguments than a command has."""
    extra = re.sub(r"^.*\(|\)$", "", error.message)
    flags = [flag for one in parameters if one.param_type_name == "option" for flag in one.opts]
    order = " ".join(one.name.upper() for one in parameters if one.param_type_name == "argument")
    written = "; pass the output with -o" if "--out" in flags else ""
    return UsageError(
        f"too many arguments for clinveil {command}: {extra}", hint=f"{order}{written}".lstrip("; ")
    )


def _refusal(
    command: str,
    option: str,
    typed: Sequence[str],
    flags: Sequence[str],
    settings: type[Settings] | None,
) -> UsageError:
    declared = settings.declared() if settings else {}
    positive = option.replace("--no-", "--", 1)
    names = {name: (one.flag, f"--{name}", one.declared.short) for name, one in declared.items()}
    meant = [name for name, written in names.items() if {option, positive} & {*written}]
    shown = [declared[name].flag for name in meant if declared[name].flag in flags]
    if shown:  # the flag of a setting has another name
        return UsageError(f"{command} has no option {option}", hint=f"did you mean {shown[0]}?")
    if meant:
        after = [typed[place + 1] for place, word in enumerate(typed[:-1]) if word == option]
        joined = [word.partition("=")[2] for word in typed if word.startswith(f"{option}=")]
        value = next((value for value in (*joined, *after) if not value.startswith("--")), "VALUE")
        if declared[meant[0]].field.annotation is bool:
            value = "true" if option == positive else "false"
        hint = " or ".join(f"--set {name}={value}" for name in meant)
        return UsageError(f"{option} is a setting of {command}, not a flag", hint=f"use {hint}")
    return UsageError(
        f"{command} has no option {option}", hint=_hint(command, option, flags, declared)
    )


def _hint(command: str, option: str, flags: Sequence[str], declared: Mapping[str, Setting]) -> str:
    """Return where the meaning of an unknown option is found, or which one is similar."""
    if (command, option) in ANSWERS:
        return ANSWERS[command, option]
    for other in SYNONYMS.get(option, ()):
        if other in flags or other.removeprefix("--set ") in declared:
            return f"did you mean {other}?"
    # Dashes are alike in all names.
    known = {one.flag.lstrip("-"): f"--set {name}" for name, one in declared.items()}
    known |= {flag.lstrip("-"): flag for flag in flags}
    near = get_close_matches(option.lstrip("-"), known, n=1, cutoff=SIMILAR)
    if not near:
        return f"see clinveil {command} --help"
    shown = known[near[0]]
    return f"did you mean {shown}?"
