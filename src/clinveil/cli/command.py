"""Commands: a function of a `Run`, with its settings, its seed and its messages, becomes a command
of the line.

A command lists which of its settings are flags. All settings are read from `--config` and `--set`.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_args

import typer

from clinveil.cli import progress
from clinveil.cli.options import JsonOut, NotesOrQuery, SetKeys, config_option, in_panel, option
from clinveil.cli.refusals import parser_class
from clinveil.core import (
    ClinveilError,
    NotesSettings,
    Setting,
    Settings,
    UsageError,
    config_names,
    first_paragraph,
    load_settings,
)

FromSql = Annotated[
    str | None, typer.Option("--from-sql", help="Read notes with an SQL query instead of NOTES.")
]
Uri = Annotated[
    str | None,
    typer.Option("--uri", help="Database: postgresql://host/db, duckdb:///FILE or sqlite:///FILE."),
]
COPY = "query"
SOURCES = frozenset({"original", "known", "training", "held_out"})
"""Names of paths of source notes."""


@contextmanager
def with_notes(arguments: dict[str, Any], settings: object) -> Iterator[dict[str, Any]]:
    """Yield arguments with the path of the notes, or of the rows of the query. Raises UsageError
    without either.
    """
    query = arguments.pop("from_sql", None)
    uri = arguments.pop("uri", None)
    if query is None and uri is None:
        if arguments.get("notes") is None:
            raise UsageError(
                "Missing argument 'NOTES'", hint="pass a path, or --from-sql QUERY --uri URI"
            )
        yield arguments
        return
    if not query or not uri or arguments.get("notes") is not None:
        raise UsageError("--from-sql and --uri require each other and replace NOTES")
    with _rows(query, uri, getattr(settings, "notes", NotesSettings()), arguments) as notes:
        yield {**arguments, "notes": notes}


@contextmanager
def _rows(query: str, uri: str, how: NotesSettings, arguments: Mapping[str, Any]) -> Iterator[Path]:
    from clinveil.core import owner_only, refuse_nameless, workplace
    from clinveil.corpus import QueryPath, copy_notes, sql_source

    source = sql_source(query, uri, how)
    places = [arguments[name] for name in ("out", "vault") if isinstance(arguments.get(name), Path)]
    if not places:
        yield QueryPath(source)
        return
    here = places[0]
    refuse_nameless(here)
    with workplace(here) as folder:
        with owner_only():
            copy_notes(source, folder / COPY)
        yield folder / COPY


if TYPE_CHECKING:
    from numpy.random import Generator

    from clinveil.core import Finding

S = TypeVar("S", bound=Settings)
COMMON = (
    "notes.text",
    "notes.id",
    "notes.patient",
    "label",
    "notes.label",
    "keep",
    "identifiers.patients",
    "identifiers.mode",
    "identifiers.phi_profile",
    "identifiers.date_order",
    "identifiers.language",
    "lm.model",
    "synthetic.epsilon",
    "synthetic.public",
    "quiet",
)
"""Settings that are flags of every command that has them."""
EITHER = "by position or as an option"
"""In the annotation of a path: it is an argument, and also an option of the same name. Other names
of the option may follow.
"""
OPTION = "_option"  # after the name of such a parameter, for its option
Flags = str | Mapping[str, str] | None
"""Names of settings that are flags, or panel of the help page -> names; None for all settings.

Other words of a panel are arguments and options of the function.
"""
WITHOUT_CONFIG = ("attack ", "evaluate ")
"""Commands with few settings, which `--set` gives; they have no `--config`."""


class Interrupted(ClinveilError):
    """The user stopped the command (exit 130).

    Args:
        continues: whether the same command continues the run.
    """

    exit_code = 130

    def __init__(self, continues: bool) -> None:
        super().__init__("interrupted", hint="the same command continues" if continues else "")


class Run(Generic[S]):
    """One call of a command.

    Attributes:
        command: the name, including its group.
        settings: read from the file, `--set` and the flags.
        json: where to write findings as JSON, or None.
        say: writes messages for people; silent with `--quiet`.
    """

    def __init__(self, command: str, settings: S, json: str | None = None) -> None:
        self.command = command
        self.settings = settings
        self.json = json
        self.say = progress.Speaker(quiet=bool(getattr(settings, "quiet", False)))

    @cached_property
    def seed(self) -> int:
        """The public seed: the given one, or a random one, which is printed at the end."""
        given: int | None = getattr(self.settings, "seed", None)
        return secrets.randbelow(2**31) if given is None else given

    def rng(self) -> Generator:
        """Return a new generator that starts from the seed."""
        from numpy.random import default_rng

        return default_rng(self.seed)

    def show(self, findings: Sequence[Finding], title: str, *, seed: int | None = None) -> None:
        """Print findings as a table, or write them as JSON if requested.

        Args:
            seed: the seed of the findings, if it is not the run's.
        """
        from clinveil.cli.findings import print_findings

        seed = self.seed if seed is None else seed
        print_findings(self.command, findings, seed=seed, json_out=self.json, title=title)


class Command(Generic[S]):
    """A function with its place on the command line; its parameters after the run are arguments and
    options.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., None],
        settings: type[S] | None,
        *,
        flags: Flags = None,
        findings: bool = False,
        resumes: bool = False,
    ) -> None:
        self.name = name
        self.function = function
        self.settings = settings
        self.findings = findings
        self.resumes = resumes
        self.panels = {"": flags} if isinstance(flags, str) else flags
        self.help = first_paragraph(function.__doc__)
        self.takes_config = settings is not None and not name.startswith(WITHOUT_CONFIG)

    def flags(self) -> dict[str, Setting]:
        """Return the settings that are flags by parameter name, in the order of the help page."""
        declared = self.settings.declared() if self.settings else {}
        names = list(declared)
        if self.panels is not None:
            names = [name for panel in self.panels.values() for name in panel.split()]
            names = [*(name for name in COMMON if name not in names), *names]
        return {declared[name].last: declared[name] for name in names if name in declared}

    def __call__(self, arguments: Mapping[str, Any]) -> None:
        """Run the function with the parsed arguments."""
        rest = dict(arguments)
        typed: dict[str, Any] = {}
        flags = self.flags()
        for parameter, setting in flags.items():
            value = rest.pop(parameter)
            if value not in (None, ()) and value != []:
                typed[setting.name] = tuple(value) if isinstance(value, list) else value
        sets = rest.pop("set_keys", None) or ()
        settings = load_settings(self.settings or Settings, typed, rest.pop("config", None), sets)
        run = Run(self.name, settings, rest.pop("json", None) if self.findings else None)
        rest = self._in_place(rest)
        with with_notes(rest, settings) if "from_sql" in rest else nullcontext(rest) as given:
            try:
                self.function(run, **given)
            except KeyboardInterrupt:
                raise Interrupted(self.resumes and given.get("out") is not None) from None
        if "seed" in vars(run):
            again = f"--seed {run.seed}" if "seed" in flags else f"--set seed={run.seed}"
            run.say(f"seed {run.seed} (public: {again} repeats this run)")

    def _either(self) -> dict[str, Parameter]:
        """Return the parameters that are given by position or as options, in order."""
        parameters = inspect.signature(self.function, eval_str=True).parameters
        return {name: one for name, one in parameters.items() if EITHER in get_args(one.annotation)}

    def _in_place(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments with paths by position in the places that no option has taken.

        Raises UsageError for a missing path, for too many, and for a release in the place of its
        source.
        """
        either = self._either()
        given = {name: value for name, value in arguments.items() if name not in either}
        by_option = {name: given.pop(f"{name}{OPTION}") for name in either}
        by_position = [arguments[name] for name in either if arguments[name] is not None]
        free = [name for name in either if by_option[name] is None]
        if len(by_position) > len(free):
            raise UsageError(
                f"too many paths: {by_position[len(free)].name}",
                hint=f"the order is {' '.join(either).upper()}",
            )
        placed = dict(zip(free, by_position, strict=False))
        for name, one in either.items():
            given[name] = by_option[name] if by_option[name] is not None else placed.get(name)
            if given[name] is None and one.default is Parameter.empty:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(
                    f"Missing argument '{name.upper()}'", hint=f"or option {option} PATH"
                )
        self._refuse_order(either, given)
        return given

    def _refuse_order(self, either: Mapping[str, Parameter], given: Mapping[str, Any]) -> None:
        """Raise UsageError if source notes are a release, and the released ones are not."""
        released = given.get("released")
        if "released" not in either or (released is not None and _of_release(released)):
            return
        for name in either.keys() & SOURCES:
            alone = name == "original" and released is None
            if given[name] is not None and not alone and _of_release(given[name]):
                raise UsageError(
                    f"{name.upper()} is a release, and RELEASED is not",
                    where=given[name].name,
                    hint=f"the order is {' '.join(either).upper()}",
                )

    def parser(self) -> Any:
        """Return the parser of the command."""

        def call(**arguments: Any) -> None:
            self(arguments)

        call.__doc__ = self.function.__doc__
        call.__signature__ = inspect.Signature(self._parameters())  # type: ignore[attr-defined]
        app = typer.Typer(add_completion=False)
        app.command(self.name.rpartition(" ")[2], cls=parser_class(self.name, self.settings))(call)
        return typer.main.get_command(app)

    def _parameters(self) -> list[Parameter]:
        """Return the parameters in the panels of the help page, and in their order."""
        either = self._either()
        own = list(inspect.signature(self.function, eval_str=True).parameters.values())[1:]
        made = (
            [("from_sql", FromSql), ("uri", Uri)]
            if any(p.annotation == NotesOrQuery for p in own)
            else []
        )
        made += [("json", JsonOut)] if self.findings else []
        flags = self.flags()
        made += [(parameter, option(setting)) for parameter, setting in flags.items()]
        if self.settings and len(self.settings.declared()) > len(flags):
            if self.takes_config:
                made.append(("config", config_option(config_names(self.settings))))
            made.append(("set_keys", SetKeys))
        # Notes are optional if a query can replace them, and a path if an option can.
        defaults = (
            None
            if parameter.annotation == NotesOrQuery or parameter.name in either
            else parameter.default
            for parameter in own
        )
        parameters = [
            p.replace(kind=p.KEYWORD_ONLY, default=value)
            for p, value in zip(own, defaults, strict=True)
        ]
        parameters = [_optional(p) if p.name in either else p for p in parameters]
        made = [*((f"{p.name}{OPTION}", _as_option(p)) for p in either.values()), *made]
        parameters += [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in made
        ]
        if self.panels is None or "" in self.panels:
            return parameters
        order = [(name, panel) for panel, names in self.panels.items() for name in names.split()]
        known = {parameter.name.removesuffix("_keys"): parameter for parameter in parameters}
        placed = [
            in_panel(known.pop(last), panel)
            for name, panel in order
            if (last := name.rpartition(".")[2]) in known
        ]
        return [*known.values(), *placed]


def _of_release(path: Path) -> bool:
    """Return whether a path is a release of clinveil, or a file of one."""
    return any((folder / "manifest.sig").is_file() for folder in (path, path.absolute().parent))


def _optional(parameter: Parameter) -> Parameter:
    """Return an argument that may be missing, as an option can replace it."""
    kind, argument, *_ = get_args(parameter.annotation)
    return parameter.replace(annotation=Annotated[kind | None, argument])


def _as_option(parameter: Parameter) -> Any:
    """Return the option of a parameter that is also an argument."""
    kind, argument, _, *others = get_args(parameter.annotation)
    flags = [f"--{parameter.name.replace('_', '-')}", *others]
    help = f"The same as {parameter.name.upper()}."
    return Annotated[kind | None, typer.Option(*flags, help=help, parser=argument.parser)]


def command(
    name: str,
    settings: type[S] | None = None,
    *,
    flags: Flags = None,
    findings: bool = False,
    resumes: bool = False,
) -> Callable[[Callable[..., None]], Command[S]]:
    """Make a function a command.

    Args:
        name: as typed, such as `attack copies`.
        settings: keys of `--set` and of the file that `--config` names.
        flags: names of the settings that are flags too (default: all), or panel of the help page ->
            names.
        findings: whether the command has findings to show, and so `--json`.
        resumes: whether the same command continues an interrupted run with `-o`.
    """

    def make(function: Callable[..., None]) -> Command[S]:
        return Command(name, function, settings, flags=flags, findings=findings, resumes=resumes)

    return make
