"""Refuse an unknown option: name the `--set` of a setting, suggest what a mistyped name or value
meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from typer.core import TyperCommand

from clinveil.core import Settings, UsageError

_FORMER = {"--decisions": "--reviewed"}


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
    if meant:
        after = [typed[place + 1] for place, word in enumerate(typed[:-1]) if word == option]
        joined = [word.partition("=")[2] for word in typed if word.startswith(f"{option}=")]
        value = next((value for value in (*joined, *after) if not value.startswith("--")), "VALUE")
        if declared[meant[0]].field.annotation is bool:
            value = "true" if option == positive else "false"
        hint = " or ".join(f"--set {name}={value}" for name in meant)
        return UsageError(f"{option} is a setting of {command}, not a flag", hint=f"use {hint}")
    if option in _FORMER and _FORMER[option] in flags:
        return UsageError(f"{command} has no option {option}", hint=f"use {_FORMER[option]} FOLDER")
    by_flag = {one.flag: name for name, one in declared.items()}
    near = get_close_matches(option, [*flags, *by_flag], n=1)
    if not near:
        return UsageError(
            f"{command} has no option {option}", hint=f"see clinveil {command} --help"
        )
    shown = near[0] if near[0] in flags else f"--set {by_flag[near[0]]}"
    return UsageError(f"{command} has no option {option}", hint=f"did you mean {shown}?")
