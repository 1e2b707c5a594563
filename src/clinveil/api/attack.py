"""Attacks on releases, word vectors and language models, evaluated against the ground truth.

Each registered attack is a function here, with the inputs and settings of its command; `run` takes a `Context`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any

from numpy.random import default_rng

from clinveil.api.frames import Reading, in_python
from clinveil.api.inputs import INPUTS, inputs_of
from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.load_settings import load_settings


@in_python
def run(name: str, context: Context, *, seed: int = 1, **settings: Any) -> list[Finding]:
    """Run a registered attack, built-in or from another distribution.

    Args:
        name: as in `clinveil attack --help`, or as registered. context: the data available to the attack.
        seed: of all random draws. settings: the attack's own settings.

    Raises UsageError for an unknown name or setting, or if the context lacks data that the attack needs.
    """
    kind = attacks.get(name)
    attack = load_settings(kind, settings)
    if not context.has(kind.needs):
        missing = f"the attack {name} needs {', '.join(sorted(kind.needs))}"
        raise UsageError(missing, hint="pass all of them in the context")
    return attack(context, default_rng(seed))


def _function(name: str, attack: type[Attack]) -> Callable[..., list[Finding]]:
    """Return an attack as a function of its inputs."""
    required = inputs_of(attack)
    optional = {given.name: field for field, given in INPUTS.items() if field not in required}
    call = _signature([given.name for given in required.values()])

    @in_python
    def function(*args: Any, **keywords: Any) -> list[Finding]:
        try:
            bound = call.bind(*args, **keywords)
        except TypeError as error:
            raise UsageError(f"attack {name}: {error}", hint=f"see help(clinveil.attack.{name})") from None
        bound.apply_defaults()
        more, columns = dict(bound.arguments["settings"]), Reading.of(bound.arguments["columns"] or {})
        values = {field: bound.arguments[given.name] for field, given in required.items()}
        values |= {field: more.pop(given) for given, field in optional.items() if given in more}
        held = {field: INPUTS[field].read(value, columns) for field, value in values.items()}
        return run(name, Context(**held, workers=bound.arguments["workers"]), seed=bound.arguments["seed"], **more)

    function.__name__ = function.__qualname__ = name.replace("-", "_")
    function.__doc__ = _documentation(attack, required)
    function.__signature__ = call  # type: ignore[attr-defined]
    return function


def _signature(names: list[str]) -> Signature:
    keyword = Parameter.KEYWORD_ONLY
    return Signature(
        [
            *(Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names),
            Parameter("seed", keyword, default=1, annotation=int),
            Parameter("workers", keyword, default=2, annotation=int),
            Parameter("columns", keyword, default=None, annotation=Mapping[str, Any] | None),
            Parameter("settings", Parameter.VAR_KEYWORD, annotation=Any),
        ],
        return_annotation=list[Finding],
    )


def _documentation(attack: type[Attack], required: Mapping[str, Any]) -> str:
    names = ", ".join(f"`{name}`" for name in attack.flags())
    inputs = "\n".join(f"    {given.name}: {given.help}" for given in required.values())
    settings = f"{names}; or an optional input" if names else "an optional input"
    return f"{attack.help()}\n\nArgs:\n{inputs}\n    columns: column roles of frames. settings: {settings}."


def __getattr__(name: str) -> Any:
    """Return a registered attack as a function, with hyphens as underscores."""
    registered = name.replace("_", "-")
    if name.startswith("_") or registered not in attacks:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _function(registered, attacks.get(registered))


def __dir__() -> list[str]:
    return sorted({"Context", "run", *(name.replace("-", "_") for name in attacks.names())})
