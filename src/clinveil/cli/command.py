"""The shape of a command: a function of a `Run`, which has its settings, its seed, and its way to speak."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from inspect import Parameter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import typer

from clinveil.cli import groups, progress
from clinveil.cli.from_sql import FromSql, Uri, with_notes
from clinveil.cli.options import Config, JsonOut, NotesOrQuery, SetKeys, option
from clinveil.core.settings import Settings, load_settings

if TYPE_CHECKING:
    from numpy.random import Generator

    from clinveil.core.finding import Finding

S = TypeVar("S", bound=Settings)


class Run(Generic[S]):
    """One call of a command.

    Attributes:
        command: its name, with that of its group. settings: those of its file and its flags.
        json: where findings go as JSON, or None. say: takes lines for people; nothing with `--quiet`.
    """

    def __init__(self, command: str, settings: S, json: str | None = None) -> None:
        self.command, self.settings, self.json = command, settings, json
        self.say = progress.Speaker(quiet=bool(getattr(settings, "quiet", False)))

    @cached_property
    def seed(self) -> int:
        """The public seed: the one given, or one drawn; it is said at the end."""
        given: int | None = getattr(self.settings, "seed", None)
        return secrets.randbelow(2**31) if given is None else given

    def rng(self) -> Generator:
        """A generator of the seed, each time from its start."""
        from numpy.random import default_rng

        return default_rng(self.seed)

    def show(self, findings: Sequence[Finding], title: str, *, seed: int | None = None) -> None:
        """Findings as a table, or as JSON where that was asked for; `seed` if it is not the run's."""
        from clinveil.cli.findings import say_findings

        seed = self.seed if seed is None else seed
        say_findings(self.command, findings, seed=seed, json_out=self.json, title=title)


class Command(Generic[S]):
    """A function that the command line calls; its parameters after the run are arguments and options."""

    def __init__(
        self, name: str, function: Callable[..., None], settings: type[S] | None, *, findings: bool, sets: bool = False
    ) -> None:
        self.name, self.function, self.settings, self.findings, self.sets = name, function, settings, findings, sets
        self.help = (function.__doc__ or "").partition("\n")[0]

    def __call__(self, arguments: Mapping[str, Any]) -> None:
        """Run it with what was typed."""
        rest, typed = dict(arguments), {}
        for name in self.settings.flags() if self.settings else ():
            value = rest.pop(name)
            typed[name] = tuple(value) if isinstance(value, list) else value
        typed = {name: value for name, value in typed.items() if value not in (None, ())}
        more = rest.pop("set_keys", None) or ()
        settings = load_settings(self.settings or Settings, typed, rest.pop("config", None), more)
        json = {"json": rest.pop("json")} if self.findings else {}
        run = Run(self.name, settings, **json)
        with with_notes(rest, settings) if "from_sql" in rest else nullcontext(rest) as given:
            self.function(run, **given)
        if "seed" in vars(run):
            run.say(f"seed {run.seed} (public: --seed {run.seed} draws the same again)")

    def parser(self) -> Any:
        """The parser of its command line."""

        def call(**arguments: Any) -> None:
            self(arguments)

        call.__doc__ = self.function.__doc__
        call.__signature__ = inspect.Signature(self._parameters())  # type: ignore[attr-defined]
        app = typer.Typer(add_completion=False)
        app.command(self.name.rpartition(" ")[2])(call)
        return typer.main.get_command(app)

    def _parameters(self) -> list[Parameter]:
        own = list(inspect.signature(self.function, eval_str=True).parameters.values())[1:]
        made = [("from_sql", FromSql), ("uri", Uri)] if any(p.annotation == NotesOrQuery for p in own) else []
        made += [("json", JsonOut)] if self.findings else []
        if self.settings:
            made += [("config", Config)] + ([("set_keys", SetKeys)] if self.sets else [])
            made += [*((name, option(name, f)) for name, f in self.settings.flags().items())]
        keyword = Parameter.KEYWORD_ONLY
        more = [Parameter(name, keyword, default=None, annotation=kind) for name, kind in made]
        return [*(_parameter(parameter) for parameter in own), *more]


def _parameter(own: Parameter) -> Parameter:
    """A parameter of the function as the parser has it; notes may be left out where a query can stand for them."""
    default = None if own.annotation == NotesOrQuery else own.default
    return own.replace(kind=Parameter.KEYWORD_ONLY, default=default)


def command(
    name: str, settings: type[S] | None = None, *, findings: bool = False, sets: bool = False
) -> Callable[[Callable[..., None]], Command[S]]:
    """Make a function a command.

    Args:
        name: as it is typed, `attack copies`; the file of a command of ours has the last word of it as its name.
        settings: the fields become flags, and keys of the file that `--config` names.
        findings: whether it has findings to show, and so `--json`. sets: whether it takes `--set group.key=value`.
    """

    def make(function: Callable[..., None]) -> Command[S]:
        return register(Command(name, function, settings, findings=findings, sets=sets))

    return make


def register(made: Command[S]) -> Command[S]:
    """Make a command known by its name; the folder of its group holds the file that calls this."""
    group, _, own = made.name.rpartition(" ")
    (groups.GROUPS[group] if group else groups.COMMANDS).register(own)(made)
    return made
