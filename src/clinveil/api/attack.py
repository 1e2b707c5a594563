"""Attacks on releases, word vectors and language models, evaluated against the ground truth.

Each registered attack is a function here, with the inputs and settings of its command. An input is
a path or the data
itself: notes as a frame, a series, a list or a corpus; patients and codes as a dictionary or a
frame; `Vectors`, a `Channel` or a language model. `clinveil init-config attack NAME` lists the
settings; `run` takes a `Context`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from numpy.random import default_rng

from clinveil.api.frames import NoteRoles
from clinveil.api.inputs import INPUTS, as_function, context_of, documentation, inputs_of
from clinveil.attacks import Context, attacks
from clinveil.core import WORKERS, Finding, Settings, UsageError, load_settings, setting

TEXTS = ("training", "held_out", "reference")
OF_MODELS = "clinveil.attacks.models"  # these attacks read notes in MedText's form


class AttackFunction(Settings):
    """Settings of every attack in Python."""

    workers: int = WORKERS


class ModelAttackFunction(AttackFunction):
    """Settings of every attack on language models in Python."""

    prepared: bool = setting(False, "All notes are in MedText form already.")


def run(name: str, context: Context, *, seed: int = 1, **settings: Any) -> list[Finding]:
    """Run a registered attack, built-in or from another distribution.

    Args:
        name: as in `clinveil attack --help`, or as registered. context: the data available to the
            attack.
        seed: of all random draws. settings: the attack's own settings.

    Raises UsageError for an unknown name or setting, or if the context lacks data that the attack
    needs.
    """
    kind = attacks.get(name)
    attack = load_settings(kind, settings)
    if not context.has(kind.needs):
        missing = f"the attack {name} needs {', '.join(sorted(kind.needs))}"
        raise UsageError(missing, hint="pass all of them in the context")
    return attack(context, default_rng(seed))


def _run(
    name: str,
    given: dict[str, Any],
    settings: dict[str, Any],
    seed: int,
    columns: Mapping[str, Any],
) -> list[Finding]:
    fields = {one.name: field for field, one in INPUTS.items()}
    how = NoteRoles.of(columns)
    held = {fields[one]: INPUTS[fields[one]].read(value, how) for one, value in given.items()}
    if attacks.get(name).__module__.startswith(OF_MODELS):
        from clinveil.lm import keeps_layout, read_notes

        prepared = bool(settings.pop("prepared", False))
        layout = keeps_layout(held.get("model"))
        for field in TEXTS:
            if field in held:
                held[field] = read_notes(held[field], prepared=prepared, layout=layout)
    workers = settings.pop("workers", 2)
    context = context_of(held, keep=how.keep or how.label, workers=workers)
    return run(name, context, seed=seed, **settings)


def __getattr__(name: str) -> Any:
    """Return a registered attack as a function, with hyphens as underscores."""
    registered = name.replace("_", "-")
    if name.startswith("_") or registered not in attacks:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kind = attacks.get(registered)
    required = {one.name: one.help for one in inputs_of(kind).values()}
    optional = {
        one.name: f"{one.help} Optional." for field, one in INPUTS.items() if field in kind.optional
    }
    of_models = kind.__module__.startswith(OF_MODELS)
    own = ModelAttackFunction if of_models else AttackFunction
    text = documentation(kind.help(), required | optional, own, kind)
    return as_function(f"attack.{name}", text, [*required], [*optional], partial(_run, registered))


def __dir__() -> list[str]:
    return sorted({"Context", "run", *(name.replace("-", "_") for name in attacks.names())})
