"""Utility measures for protected notes, and for vectors trained on them.

Each registered evaluation is a function here, with the inputs and settings of its command. An input
is a path or the
data itself: notes of any supported type, spans as `Deidentifier.find_all` returns them, word pairs
as (term, term, score), `Vectors`, or released id -> source id. `clinveil init-config evaluate NAME`
lists the settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from warnings import warn

import narwhals as nw
import numpy as np

from clinveil.api.frames import ONE_TEXT, NoteRoles, arrow, path_of
from clinveil.api.inputs import as_function, documentation
from clinveil.api.spans import given_spans
from clinveil.core import Finding, InputError, InputWarning, NotesSettings, load_settings
from clinveil.utility import EVALUATIONS, Evaluation

NOTES = ("original", "released", "output", "notes")


def _run(
    name: str,
    given: dict[str, Any],
    settings: dict[str, Any],
    seed: int,
    columns: Mapping[str, Any],
) -> list[Finding]:
    notes = {key: value for key, value in columns.items() if key in NotesSettings.model_fields}
    several = {
        k: (v,) if k in ("label", "model") and isinstance(v, str) else v
        for k, v in settings.items()
    }
    kind = EVALUATIONS.get(name)
    one = {"workers": 1} if "workers" in kind.declared() else {}  # a script needs no __main__ guard
    roles = {"notes": notes} if notes else {}
    how = load_settings(kind, {**roles, **one, **several})
    read = {
        key: _read(key, value, {**columns, "label": several.get("label", ())})
        for key, value in given.items()
    }
    done = how(read, seed)
    for remark in done.remarks:
        warn(remark, InputWarning, stacklevel=3)
    return list(done.findings)


def _read(name: str, value: Any, columns: Mapping[str, Any]) -> Any:
    """Return an input as evaluations take it: a path, a corpus, spans, pairs or a crosswalk."""
    if name == "crosswalk" and isinstance(value, str | Path):
        from clinveil.releases import source_ids

        return partial(source_ids, Path(value))
    if name == "pairs":
        return _pairs(value)
    if isinstance(value, str | Path):
        return path_of(value, f"the {name}", ONE_TEXT)
    if name in ("gold", "found"):
        return given_spans(value, name)
    if name not in NOTES:
        return value
    roles = NoteRoles.of(columns if name == "original" else {**columns, "label": ()})
    return roles.opened(value)[0]


def _pairs(pairs: Any) -> list[Any]:
    """Return the paths and `PairList`s of one or several lists; rows of (term, term, score) are one
    list.
    """
    from clinveil.utility import PairList

    if nw.dependencies.is_into_dataframe(pairs):  # its first three columns
        pairs = list(zip(*(column.to_pylist() for column in arrow(pairs).columns[:3]), strict=True))
    several: list[Any] = [pairs] if isinstance(pairs, str | Path | PairList) else list(pairs)
    if all(isinstance(one, str | Path | PairList) for one in several):
        return [Path(one) if isinstance(one, str) else one for one in several]
    try:
        rows = [(str(left), str(right), float(score)) for left, right, score in map(tuple, several)]
    except (TypeError, ValueError):
        hint = "pass (term, term, score) for each pair"
        raise InputError(
            "a pair is not two terms and a number", where="the pairs", hint=hint
        ) from None
    return [
        PairList(
            "pairs", tuple((a, b) for a, b, _ in rows), np.array([score for _, _, score in rows])
        )
    ]


def __getattr__(name: str) -> Any:
    """Return a registered evaluation as a function."""
    if name.startswith("_") or name not in EVALUATIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kind: type[Evaluation] = EVALUATIONS.get(name)
    required = [one for one, given in kind.inputs.items() if given.required]
    optional = [one for one in kind.inputs if one not in required]
    text = documentation(kind.help(), {one: given.help for one, given in kind.inputs.items()}, kind)
    return as_function(f"evaluate.{name}", text, required, optional, partial(_run, name))


def __dir__() -> list[str]:
    return list(EVALUATIONS.names())
