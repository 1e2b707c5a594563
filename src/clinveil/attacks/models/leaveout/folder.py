"""The folder of one audit: what its findings are of, so that those of other settings do not replace them unseen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.core.errors import UsageError
from clinveil.core.files import private_text, remove
from clinveil.core.runfolder import fingerprint
from clinveil.lm.notes import PlainNotes
from clinveil.scale.tasks import Store, study_folder

FINDINGS, RUN = "findings.json", "run.json"
_TABLES = [f"units-{arm}-{what}.csv" for arm in ("random", "pretrained", "word-vectors") for what in ("model", "text")]
ADDED = ("pretrain", "init_vectors", "from_text", "reseeds", "seeds")  # more of these adds to what is there
SECRET = """SECRET: all of this folder. It must not leave.

tasks/ holds the notes as numbers with their vocabulary, who was left out, states of the language models that were
trained on the notes, the log-probability that each model gives every word of the audited patients and, with
--from-text, notes that the models wrote. findings.json and units-*.csv (a row a unit) hold numbers only, but they tell
how well the attack works on these very notes. run.json holds settings and hashes.
"""


@dataclass(frozen=True)
class RunSpec:
    """All that the findings of an audit depend on, ready for JSON."""

    values: dict[str, Any]

    @classmethod
    def of(cls, notes: PlainNotes, settings: LeaveOutSettings, seed: int, public: PlainNotes | None) -> RunSpec:
        """Of a run. Raises UsageError for a recipe whose parts do not fit."""
        recipe, flat, words = settings.audit_recipe(), settings.flat(), settings.lm.word_vocabulary
        own = {name: flat[name] for name in ("mode", "model", "unit", "units", "plant_names", "device")}
        own |= {"seed": seed, "notes": _hash(notes), "vocabulary": "words" if words else "bytes"}
        size = "min_count" if words else "vocabulary_size"
        own[size] = flat[size]
        own |= {name: value for name, value in (recipe.as_dict() if recipe else {}).items() if name != "kind"}
        vectors = fingerprint(settings.init_vectors) if settings.init_vectors else ""
        own |= {"pretrain": _hash(public) if public else "", "init_vectors": vectors}
        return cls({**own, "from_text": settings.from_text, "reseeds": settings.reseeds, "seeds": settings.seeds})

    def differs_from(self, before: dict[str, Any]) -> list[str]:
        """The settings that are others, as flags; not those that only add to what was measured."""
        names = dict.fromkeys([*self.values, *before])
        others = (name for name in names if not self._keeps(name, before))
        return [name if name == "notes" else f"--{name.replace('_', '-')}" for name in others]

    def _keeps(self, name: str, before: dict[str, Any]) -> bool:
        now, then = self.values.get(name), before.get(name)
        if name in ("reseeds", "seeds"):
            return type(then) is int and int(now or 0) >= then
        return now == then or (name in ADDED and not then)

    def save(self, out: Path) -> None:
        """Note it in the folder of the audit."""
        private_text(out / RUN, json.dumps(self.values, indent=1) + "\n")


def _hash(notes: PlainNotes) -> str:
    rows = [notes.texts, notes.note_ids, notes.patients]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:32]


@contextmanager
def audit_folder(out: Path, spec: RunSpec, *, force: bool = False) -> Iterator[Store]:
    """Open DIR for one audit: new, or that of the same settings, or of fewer.

    Raises:
        UsageError: it holds findings of other settings, or as `study_folder` does.
    """
    with study_folder(out, force=force, secret=SECRET) as store:
        if force:
            for name in (FINDINGS, RUN, *_TABLES):
                remove(out / name)
        elif (out / FINDINGS).exists():
            _refuse_other(out, spec)
        if not (out / RUN).exists():
            spec.save(out)
        yield store
        spec.save(out)


def _refuse_other(out: Path, spec: RunSpec) -> None:
    before = _before(out)
    others = spec.differs_from(before)
    if others:
        what = f"of other settings: {', '.join(others)}" if before else "and does not say of which settings"
        remedy = "name another folder; --force removes what is there, its models too"
        raise UsageError(f"holds findings {what}", where=out.name, remedy=remedy)


def _before(out: Path) -> dict[str, Any]:
    """What an earlier run noted; nothing where it is not readable."""
    try:
        found = json.loads((out / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def seed_of(out: Path) -> int | None:
    """The seed of an earlier run in DIR, so that the same command without one goes on; None if there is none."""
    seed = _before(out).get("seed")
    return seed if type(seed) is int else None
