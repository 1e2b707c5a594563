"""Refuse an unknown option or command: name the `--set` of a setting, suggest what a guessed or
mistyped word meant.
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
    "--kinds": ("--as",),
    "--output": ("--out",),
    "--audience": ("--for",),
    "--profile": ("--phi-profile",),
    "--policy": ("--phi-profile",),
    "--names": ("--patients",),
    "--known-names": ("--patients",),
    "--known-patients": ("--patients",),
    "--decisions": ("--reviewed",),
    "--public": ("--more-text",),
    "--eps": ("--epsilon",),
    "--target-epsilon": ("--epsilon",),
    "--dp": ("--epsilon",),
    "--train": ("--training",),
    "--members": ("--training",),
    "--real": ("--training", "--known"),
    "--test": ("--held-out",),
    "--control": ("--held-out",),
    "--non-members": ("--held-out",),
    "--nonmembers": ("--held-out",),
    "--source": ("--original", "--known"),
    "--original": ("--known", "--training"),
    "--model": ("--classifier", "--set identifiers.tagger"),
    "--marks": ("--marked",),
    "--columns": ("--keep",),
    "--note-id": ("--id",),
    "--patient-id": ("--patient",),
    "--classify": ("--label",),
    "--lang": ("--language",),
    "--date-format": ("--date-order",),
    "--dayfirst": ("--date-order",),
    "--replace-with": ("--mode",),
    "--tag": ("--mode",),
    "--tags": ("--mode",),
    "--surrogates": ("--mode",),
    "--surrogate": ("--mode",),
    "--keep-dates": ("--phi-profile",),
    "--entities": ("--phi-profile",),
    "--silent": ("--quiet",),
    "--overwrite": ("--force",),
    "--date-shift": ("--shift", "--phi-profile"),
    "--phi": ("--phi-profile",),
    "--jobs": ("--workers",),
    "--n-jobs": ("--workers",),
    "--threads": ("--workers",),
    "--num-workers": ("--workers",),
    "-j": ("--workers",),
    "--backend": ("--on",),
    "--engine": ("--on",),
    "--ray-address": ("--on",),
    "--random-state": ("--seed",),
    "--random-seed": ("--seed",),
    "--num-notes": ("--set synthetic.count",),
    "--dataset": ("--pairs",),
    "--vector-size": ("--dim",),
}
"""An option that people try -> what has its meaning here, as far as the command has it."""
_REPORT = "the report is HTML; print it to PDF in a browser"
ANSWERS = {
    ("compare", "--epsilon"): "with --public FILE, epsilon 8, 3 and 1 are compared",
    ("compare", "--original"): "pass the original notes only; compare makes the releases",
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
    ("deidentify", "--labels"): "did you mean --phi-profile?",
    ("release", "--resume"): "run the same command again: it continues",
    ("release", "--format"): "a release has the format of the notes",
    ("release", "--report-format"): _REPORT,
    ("report", "--format"): _REPORT,
    ("report", "--recipient"): "pass it to clinveil release",
    ("withdraw", "--patient"): "a whole release is withdrawn: clinveil withdraw OUT --reason TEXT",
    ("review", "--sample"): "clinveil validate draws a sample to judge",
    ("review", "--n"): "clinveil validate draws a sample to judge",
}
"""Command and option -> where its meaning is found."""
_ROLE = re.compile(r"-(columns?|cols?|files?|path|dir|folder|name)$")
"""The end of a guessed option that says what kind of value it has."""
_INPUTS = ("--input", "--in", "-i", "--notes", "--text-dir")
_RELEASE = "use clinveil release NOTES -o OUT --as "
_DEIDENTIFY = "use clinveil deidentify NOTES -o OUT"
_EMBED = "use clinveil embed NOTES -o VECTORS"
_SYNTHETIC = f"{_RELEASE}synthetic; its language model is in OUT/vault"
_QUERIES = "vectors are files in word2vec format; open them with clinveil.load_vectors or gensim"
COMMANDS_MEANT = {
    ("command", "anonymize"): _DEIDENTIFY,
    ("command", "check"): "use clinveil verify OUT/release, or clinveil inspect NOTES",
    ("command", "deid"): _DEIDENTIFY,
    ("command", "generate"): _SYNTHETIC,
    ("command", "mask"): _DEIDENTIFY,
    ("command", "most-similar"): _QUERIES,
    ("command", "nearest"): _QUERIES,
    ("command", "obfuscate"): f"{_RELEASE}obfuscated",
    ("command", "redact"): f"{_DEIDENTIFY} --mode remove",
    (
        "command",
        "reproduce",
    ): "each release has a new key; clinveil release --reuse OUT/vault uses it again",
    ("command", "run"): f"{_RELEASE}KIND",
    ("command", "score"): "use clinveil evaluate deidentification",
    ("command", "synthesize"): _SYNTHETIC,
    ("command", "synthetic"): _SYNTHETIC,
    ("command", "tag"): f"{_DEIDENTIFY} --mode tag",
    ("command", "train"): f"{_EMBED}, or {_RELEASE.removeprefix('use ')}synthetic",
    ("command", "train-lm"): _SYNTHETIC,
    ("command", "train-vectors"): _EMBED,
    ("command", "vectors"): _EMBED,
    ("attack command", "vectors"): "use clinveil attack names, association or inversion",
}
"""Group and word that people type as its command -> what does it."""


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
                if option in _INPUTS and option not in flags:
                    raise _no_option(name, option, _first_argument(self.params)) from None
                raise _refusal(name, option, typed, flags, settings) from None

    return Parser


def unknown_command(kind: str, typed: str, names: Sequence[str]) -> UsageError:
    """Return the error for a word that is no command of a group.

    Args:
        kind: what the members of the group are. names: of its commands.
    """
    near = get_close_matches(typed, names, n=1, cutoff=SIMILAR)
    hint = f"one of {', '.join(names)}"
    if near:
        hint = f"did you mean `{near[0]}`?"
    if (kind, typed) in COMMANDS_MEANT:
        hint = COMMANDS_MEANT[kind, typed]
    elif "/" in typed or "." in typed:
        return UsageError(f"{typed} is a path; a command comes first", hint=hint)
    return UsageError(f"there is no command `{typed}`", hint=hint)


def wrong_value(message: str) -> str:
    """Return the parser's message on a wrong value, with a suggestion for a mistyped choice."""
    message = message.replace("Value error, ", "")
    typed, _, choices = message.rpartition(": ")[2].partition(" is not one of ")
    if typed == "'all'" and "--as" in message:
        return f"{message} clinveil compare makes all kinds."
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


def _first_argument(parameters: Sequence[Any]) -> str:
    arguments = [one.name.upper() for one in parameters if one.param_type_name == "argument"]
    return f"pass {arguments[0] if arguments else 'NOTES'} without a flag"


def _no_option(command: str, option: str, hint: str) -> UsageError:
    return UsageError(f"{command} has no option {option}", hint=hint)


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
        return _no_option(command, option, f"did you mean {shown[0]}?")
    if meant:
        after = [typed[place + 1] for place, word in enumerate(typed[:-1]) if word == option]
        joined = [word.partition("=")[2] for word in typed if word.startswith(f"{option}=")]
        value = next((value for value in (*joined, *after) if not value.startswith("--")), "VALUE")
        if declared[meant[0]].field.annotation is bool:
            value = "true" if option == positive else "false"
        hint = " or ".join(f"--set {name}={value}" for name in meant)
        return UsageError(f"{option} is a setting of {command}, not a flag", hint=f"use {hint}")
    return _no_option(command, option, _hint(command, option, flags, declared))


def _hint(command: str, option: str, flags: Sequence[str], declared: Mapping[str, Setting]) -> str:
    """Return where the meaning of an unknown option is found, or which one is similar."""
    bare = _ROLE.sub("", option)
    for written in (option, bare):
        if (command, written) in ANSWERS:
            return ANSWERS[command, written]
    if bare != option and bare in flags:
        return f"did you mean {bare}?"
    for other in SYNONYMS.get(option, SYNONYMS.get(bare, ())):
        if other in flags or other.removeprefix("--set ") in declared:
            return f"did you mean {other}?"
    # Dashes are alike in all names.
    known = {one.flag.lstrip("-"): f"--set {name}" for name, one in declared.items()}
    known |= {flag.lstrip("-"): flag for flag in flags}
    near = get_close_matches(option.lstrip("-"), known, n=1, cutoff=SIMILAR)
    if not near:
        return f"see clinveil {command} --help"
    shown = known[near[0]]
    is_flag = shown.startswith("-")
    return f"did you mean {shown}?" if is_flag else f"pass {shown.upper()} without a flag"
