"""Settings of `clinveil compare`, and the releases that it compares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from clinveil.core import (
    FORCE,
    QUIET,
    WORKERS,
    NotesSettings,
    Settings,
    UsageError,
    group,
    load_settings,
    setting,
)
from clinveil.releases import PRODUCERS, ReleaseSettings
from clinveil.utility import CLASSIFIERS

BUILT_IN: dict[str, tuple[str, ...]] = {
    "obfuscated": ("kind=obfuscated",),
    "deidentified": ("kind=deidentified",),
    "synthetic": ("kind=synthetic",),
}
"""The releases compared by default: each kind at its defaults."""
DEMO: dict[str, tuple[str, ...]] = {
    "deidentified": ("kind=deidentified",),
    "obfuscated": ("kind=obfuscated", "vectors.epochs=5"),
    "synthetic": ("kind=synthetic", "channel.min_patients=12"),
}
"""The releases of `clinveil demo`: few passes over few notes, which resemble each other."""
PRIVATE = {
    f"epsilon-{epsilon}": ("kind=synthetic", f"synthetic.epsilon={epsilon}")
    for epsilon in (8, 3, 1)
}
"""Synthetic releases with differential privacy, compared if there is public text."""
_CONFIG = "config="  # as --config of release
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


class CompareSettings(Settings):
    """Settings of `clinveil compare`."""

    label: str | None = setting(
        None, "Column to classify by, required: utility is measured on it.", min_length=1
    )
    notes: NotesSettings = group(NotesSettings)
    patients: Path | None = setting(
        None,
        "Known patients (patients.parquet): their identifiers are searched for.",
        secret="path",
    )
    pairs: tuple[Path, ...] = setting(
        (), "Word pairs with human similarity scores; repeatable.", secret="path"
    )
    kind: tuple[str, ...] = setting(
        (),
        "Compare only these kinds; repeatable.",
        flag="as",
        aliases=("--kind",),
        members=PRODUCERS,
    )
    public: Path | None = setting(
        None, "Public text: also compare synthetic notes with epsilon 8, 3 and 1.", secret="path"
    )
    known: Path | None = setting(
        None, "Public texts about the patients, for linkage.", secret="path"
    )
    model: tuple[str, ...] = setting(("tfidf-lr",), "Classifiers; repeatable.", members=CLASSIFIERS)
    workers: int = WORKERS
    seed: int = setting(1, "Public seed of all draws.", ge=0, le=2**31 - 1)
    force: bool = FORCE
    quiet: bool = QUIET
    setting: tuple[str, ...] = setting(
        (), "Add NAME=KEY=VALUE[,KEY=VALUE], keys as of release --set, or config; repeatable."
    )

    def refuse(self) -> None:
        """Raise UsageError for settings that do not fit together."""
        if self.label is None:
            raise UsageError("no label to measure utility on", hint="pass --label COLUMN")
        if not self.model:
            raise UsageError(
                "no classifier selected",
                hint="pass --set model=NAME, of " + ", ".join(CLASSIFIERS.names()),
            )


class Candidate(NamedTuple):
    """A release to compare: its name and its settings."""

    name: str
    settings: ReleaseSettings


def candidates(how: CompareSettings) -> list[Candidate]:
    """Return the releases to compare.

    Raises:
        UsageError: a setting without a name, with a name in use, or with keys or values that a
            release does not take.
    """
    wanted = {**BUILT_IN, **dict(_named(how.setting, set(BUILT_IN).union(PRIVATE)))}
    if how.public is not None:
        wanted |= {
            name: (*sets, f"synthetic.public={how.public}") for name, sets in PRIVATE.items()
        }
    releases = [Candidate(name, _settings(name, sets, how)) for name, sets in wanted.items()]
    return [
        candidate for candidate in releases if not how.kind or candidate.settings.kind in how.kind
    ]


def _named(settings: Sequence[str], names: set[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Split each NAME=KEY=VALUE[,KEY=VALUE] into its name and its keys; `names`: those in use."""
    for text in settings:
        name, equals, keys = text.partition("=")
        if not (_NAME.fullmatch(name) and equals and "=" in keys):
            raise UsageError(
                "--setting takes NAME=KEY=VALUE[,KEY=VALUE]",
                hint="--setting wide=kind=obfuscated,channel.n=7-20",
            )
        if name in names:
            raise UsageError(f"--setting {name}: the name is in use", hint="choose another name")
        names.add(name)
        yield name, tuple(keys.split(","))


def demo_candidates(how: CompareSettings) -> list[Candidate]:
    """Return the releases of the demo: each kind with small settings, under a key of its own."""
    return [
        Candidate(name, _settings(name, sets, how).but(seed=None)) for name, sets in DEMO.items()
    ]


def _settings(name: str, sets: Sequence[str], how: CompareSettings) -> ReleaseSettings:
    option = f"--setting {name}"
    configs = [text.removeprefix(_CONFIG) for text in sets if text.startswith(_CONFIG)]
    keys = [text for text in sets if not text.startswith(_CONFIG)]
    config = Path(configs[-1]) if configs else None
    try:
        settings = load_settings(ReleaseSettings, {}, config, keys, option=option)
    except UsageError as error:
        where = error.where or option
        raise UsageError(error.problem, where=where, hint=error.hint) from None
    if not settings.kind:
        raise UsageError(f"{option}: no kind of release", hint="add kind=obfuscated, or another")
    return settings.but(
        notes=how.notes,
        label=(how.label,),
        keep=(),
        identifiers={"patients": how.patients},
        model=how.model,
        seed=how.seed,
        workers=how.workers,
        ledger=None,
        force=True,
        quiet=how.quiet,
    )
