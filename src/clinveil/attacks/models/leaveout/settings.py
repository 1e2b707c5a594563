"""What `clinveil attack leaveout` can be told, and the folder of one audit.

The folder notes what its findings are of, so that those of other settings do not replace them unseen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from clinveil.core.errors import UsageError
from clinveil.core.files import private_text, remove
from clinveil.core.runfolder import fingerprint
from clinveil.core.settings import FORCE, QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group
from clinveil.lm.notes import PlainNotes
from clinveil.lm.recipe import ModelSettings, Recipe
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
Mode = Literal["exact", "compat", "unigram"]


class LeaveOutSettings(Settings):
    """How S-PDTP is measured."""

    lm: ModelSettings = group(ModelSettings)
    notes: NotesSettings = group(NotesSettings)
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
    mode: Mode = flag("exact", "Exact, as in paper C (compat), or the closed form of a unigram.")
    unit: Literal["patient", "note"] = flag("patient", "What is left out: all notes of a patient, or one note.")
    units: int = flag(30, "How many of them are left out, one after another (paper: 30).", ge=2)
    reseeds: int = flag(3, "Models of all notes with other seeds: the reseed floor.", ge=0)
    seeds: int = flag(2, "Training seeds under which each unit is left out: the effect is measured across them.", ge=1)
    from_text: bool = flag(False, "Also from released notes alone: synthesize under each model, and score by n-grams.")
    plant_names: bool = flag(False, "Plant an invented full name in a random half of the audited units.")
    pretrain: Path | None = flag(None, "Train on these public notes first; measured with and without.")
    init_vectors: Path | None = flag(None, "Begin with these word vectors; measured with and without.")
    prepared: bool = flag(False, "NOTES are in MedText's form already (clinveil prepare medtext).")
    max_hours: float = flag(8.0, "Refuse what would take longer.", gt=0)

    @model_validator(mode="after")
    def _can_be_left_out(self) -> Self:
        if self.mode == "compat" and self.lm.model == "gpt":
            raise ValueError("--mode compat is of the LSTM: a GPT reads each note by itself")
        if self.mode == "unigram":
            self._refuse_beside_unigram()
        if self.init_vectors and not self.lm.word_vocabulary:
            raise ValueError("--init-vectors needs --vocabulary words")
        if (self.pretrain or self.init_vectors) and not self.lm.neural:
            raise ValueError("--pretrain and --init-vectors are of the networks: --model lstm or gpt")
        return self

    def _refuse_beside_unigram(self) -> None:
        names = ("plant_names", "from_text", "pretrain", "init_vectors")
        given = [f"--{name.replace('_', '-')}" for name in names if getattr(self, name)]
        if given:
            networks = bool(self.pretrain or self.init_vectors)
            hint = "--mode exact" if networks else "--mode exact --model unigram"
            are = "is" if len(given) == 1 else "are"
            raise ValueError(f"{' and '.join(given)} {are} not for --mode unigram, a closed form: take {hint}")

    def audit_recipe(self) -> Recipe | None:
        """The recipe that the mode asks for: fixed schedule and rows, or paper C's stream, annealed; --schedule wins.

        None for count models.
        """
        if not self.lm.neural:
            return None
        recipe = self.lm.recipe()
        if self.mode == "exact":
            return replace(recipe, plan="rows", schedule="fixed")
        return replace(recipe, plan="stream", schedule=self.lm.schedule or "annealed")


def run_spec(notes: PlainNotes, settings: LeaveOutSettings, seed: int, public: PlainNotes | None) -> dict[str, Any]:
    """All that the findings of an audit depend on, ready for JSON.

    Raises UsageError for a recipe whose parts do not fit.
    """
    recipe, flat, words = settings.audit_recipe(), settings.flat(), settings.lm.word_vocabulary
    own = {name: flat[name] for name in ("mode", "model", "unit", "units", "plant_names", "device")}
    own |= {"seed": seed, "notes": _hash(notes), "vocabulary": "words" if words else "bytes"}
    size = "min_count" if words else "vocabulary_size"
    own[size] = flat[size]
    own |= {name: value for name, value in (recipe.as_dict() if recipe else {}).items() if name != "kind"}
    vectors = fingerprint(settings.init_vectors) if settings.init_vectors else ""
    own |= {"pretrain": _hash(public) if public else "", "init_vectors": vectors}
    return own | {"from_text": settings.from_text, "reseeds": settings.reseeds, "seeds": settings.seeds}


def _hash(notes: PlainNotes) -> str:
    rows = [notes.texts, notes.note_ids, notes.patients]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:32]


@contextmanager
def audit_folder(out: Path, spec: dict[str, Any], *, force: bool = False) -> Iterator[Store]:
    """Open DIR for one audit (`run_spec`): new, or that of the same settings, or of fewer.

    Raises:
        UsageError: it holds findings of other settings, or as `study_folder` does.
    """
    noted = json.dumps(spec, indent=1) + "\n"
    with study_folder(out, force=force, secret=SECRET) as store:
        if force:
            for name in (FINDINGS, RUN, *_TABLES):
                remove(out / name)
        elif (out / FINDINGS).exists():
            _refuse_other(out, spec)
        if not (out / RUN).exists():
            private_text(out / RUN, noted)
        yield store
        private_text(out / RUN, noted)


def _refuse_other(out: Path, spec: dict[str, Any]) -> None:
    """Raise UsageError where settings are others, but for those that only add to what was measured."""
    before = _before(out)

    def kept(name: str) -> bool:
        now, then = spec.get(name), before.get(name)
        if name in ("reseeds", "seeds"):
            return type(then) is int and int(now or 0) >= then
        return now == then or (name in ADDED and not then)

    others = [name for name in dict.fromkeys([*spec, *before]) if not kept(name)]
    if others:
        flags = [name if name == "notes" else f"--{name.replace('_', '-')}" for name in others]
        what = f"of other settings: {', '.join(flags)}" if before else "and does not say of which settings"
        hint = "name another folder; --force removes what is there, its models too"
        raise UsageError(f"holds findings {what}", where=out.name, hint=hint)


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
