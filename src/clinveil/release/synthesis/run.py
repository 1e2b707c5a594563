"""The job from notes to synthetic notes; what was trained stays in the vault, so that a killed run goes on."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import numpy as np

from clinveil.errors import GateError, UsageError
from clinveil.files import private_folder, private_text, remove, whole
from clinveil.files import sha256 as file_sha256
from clinveil.finding import Finding, document
from clinveil.keys import Key
from clinveil.lm.checkpoint import load_model, save_model
from clinveil.lm.model import LanguageModel, fit_of
from clinveil.lm.notes import PlainNotes, encode
from clinveil.lm.ready import ready
from clinveil.lm.sampling import Drawing, lanes_for
from clinveil.lm.train import make_vocabulary, train_model
from clinveil.release.synthesis.floor import Floor
from clinveil.release.synthesis.gates import NOT_TRIED, Looked, look
from clinveil.release.synthesis.settings import SynthesisSettings
from clinveil.release.synthesis.sides import Sides, split_as_before, split_sides
from clinveil.release.synthesis.write import Counts, Wanted, draw_notes, read_back, write_to

Say = Callable[[str], None]
TEST_SEED = "TEST SEED: not for release"
MANIFEST, RUN, STATE = "manifest.json", "run.json", "training.safetensors"
README = """The secrets of a run of `clinveil synthesize`. SECRET: none of this may leave.

key.bin        every draw comes from it
model/         the language model; it remembers the notes that it was trained on
manifest.json  what was run, counts, gates and findings; no note text
"""


@dataclass
class Synthesis:
    """One run.

    Attributes:
        source: a folder of a model that was trained before, or None.
    """

    settings: SynthesisSettings
    notes: PlainNotes = field(repr=False)
    out: Path
    vault: Path
    source: Path | None
    say: Say

    def run(self) -> list[Finding]:
        """Train (or go on, or take the model given), write, look, and let the notes out.

        Raises:
            GateError: a gate failed; the model stays in the vault, no note leaves. InputError, UsageError: see there.
        """
        key, seed = self._open()
        model, sides = self._model(seed)
        found = self._fit(model, sides)
        floor = Floor.of(sides.training, self.settings.min_patients)
        with whole(self.out, force=self.settings.force) as part:
            counts, written = self._write(model, key, floor, sides, part)
            looked = look(
                written,
                counts.notes,
                sides,
                floor,
                np.random.default_rng([seed, 1]),
                span=self.settings.span,
                feed=self.settings.patients,
            )
            found += [_truncated(counts), *looked.findings]
            self._keep(model.kind, looked, found, counts, floor, key, seed)
            refuse_failed(looked)
        remove(self.vault / STATE)
        return found

    def _open(self) -> tuple[Key, int]:
        """The vault: new, or that of the same run unfinished; its key and seed."""
        asked = self._asked()
        if self.vault.exists() and self.settings.force and ((self.vault / RUN).exists() or _empty(self.vault)):
            remove(self.vault)
        if not (self.vault / RUN).exists():
            if self.vault.exists() and not _empty(self.vault):
                raise UsageError("is there already, and is no vault of this command", where=self.vault.name)
            return self._new(asked)
        if (self.vault / MANIFEST).exists() and self.out.exists():
            raise UsageError("is the vault of a finished run", where=self.vault.name, remedy="another OUT, or --force")
        before = json.loads((self.vault / RUN).read_text(encoding="utf-8"))
        if before["asked"] != asked:
            if not any((self.vault / made).exists() for made in ("model", STATE, MANIFEST)):
                remove(self.vault)  # it failed before it had made anything
                return self._new(asked)
            remedy = "give the same settings and notes to go on, or --force to start over"
            raise UsageError("an unfinished run with other settings or notes", where=self.vault.name, remedy=remedy)
        return self._key(), int(before["training_seed"])

    def _new(self, asked: str) -> tuple[Key, int]:
        given = self.settings.seed
        key = Key.generate() if given is None else Key.from_seed(given)
        seed = secrets.randbelow(2**31) if given is None else given
        private_folder(self.vault)
        key.save(self.vault / "key.bin")
        private_text(self.vault / "README.txt", README)
        private_text(self.vault / RUN, json.dumps({"asked": asked, "training_seed": seed}) + "\n")
        return key, seed

    def _key(self) -> Key:
        given = self.settings.seed
        return Key.load(self.vault / "key.bin") if given is None else Key.from_seed(given)

    def _asked(self) -> str:
        """A hash of the notes and of all settings that change what comes out."""
        free = {"workers", "quiet", "force", "batch", "device", "patients"}
        hashed = sha256(self.settings.model_dump_json(exclude=free).encode())
        if self.source is not None:
            hashed.update(folder_digest(self.source).encode())
        for row in zip(self.notes.note_ids, self.notes.patients, self.notes.texts, strict=True):
            hashed.update(repr(row).encode("utf-8", "surrogatepass"))
        return hashed.hexdigest()

    def _model(self, seed: int) -> tuple[LanguageModel, Sides]:
        """The model: given, or trained before a kill, or trained now."""
        place = self.source or self.vault / "model"
        if self.source is not None or (place / "model.json").exists():
            model, about = load_model(place, device=self.settings.device)
            return model, split_as_before(self.notes, about.get("split"), place.name)
        sides = split_sides(self.notes, self.settings.held_out, seed)
        self.say(f"{len(sides.training)} notes to train on, {len(sides.held_out)} kept aside")
        vocabulary = make_vocabulary(sides.training, self.settings)
        model, went = train_model(
            sides.training,
            encode(sides.training.texts, vocabulary),
            vocabulary,
            self.settings,
            seed=seed,
            threads=self.settings.workers,
            validation=encode(sides.held_out.texts, vocabulary),
            state=self.vault / STATE,
            say=self.say,
        )
        split = {"seed": seed, "share": self.settings.held_out, "notes_sha256": sides.digest}
        save_model(model, place, {"split": split, "training": went})
        return model, sides

    def _fit(self, model: LanguageModel, sides: Sides) -> list[Finding]:
        """Perplexity of the notes kept aside."""
        from clinveil.utility.perplexity import perplexity_findings

        with ready(model, threads=self.settings.workers):
            fit = fit_of(model, encode(sides.held_out.texts, model.vocabulary))
        return perplexity_findings(model, fit, "held out")

    def _write(
        self, model: LanguageModel, key: Key, floor: Floor, sides: Sides, part: Path
    ) -> tuple[Counts, PlainNotes]:
        how, counts = self.settings, Counts()
        lanes = lanes_for(how.count or len(sides.training), how.batch)
        drawing = Drawing(lanes, how.longest, how.temperature, how.top_p)
        batches = draw_notes(model, key, drawing, floor, Wanted(how.count, sides.training.words), counts, self.say)
        with ready(model, double=how.exact, threads=how.workers):
            path = write_to(part, self.out, batches, TEST_SEED if key.test_seed is not None else None)
        return counts, read_back(path)

    def _keep(
        self, kind: str, looked: Looked, found: list[Finding], counts: Counts, floor: Floor, key: Key, seed: int
    ) -> None:
        manifest = {
            "schema": "clinveil.synthesis/1",
            "secret": True,
            "version": version("clinveil"),
            **({"warning": TEST_SEED} if key.test_seed is not None else {}),
            "settings": self.settings.model_dump(mode="json", exclude={"workers", "quiet", "force", "patients"}),
            "model": {"kind": kind, "trained": "before" if self.source else "in this run"},
            "key_commitment": key.commitment,
            "training_seed": seed,
            "notes": vars(counts) | {"words_below_floor": floor.replaced},
            "gates": [{"name": g.name, "passed": g.passed, "value": g.value} for g in looked.gates],
            "not_tried": list(NOT_TRIED),
            "findings": document("synthesize", found, seed=seed)["findings"],
        }
        private_text(self.vault / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
        for line in _lines(counts, floor, looked):
            self.say(line)


def folder_digest(folder: Path) -> str:
    """SHA-256 of the files of a folder and their names; "" where there is none."""
    files = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    return " ".join(f"{file.name} {file_sha256(file)}" for file in files)


def _empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _truncated(counts: Counts) -> Finding:
    from clinveil.stats import wilson

    low, high = wilson(counts.truncated, counts.notes)
    detail: dict[str, str | int] = {"unit": "notes", "interval": "Wilson, 95 %", "without_a_word": counts.empty}
    share = counts.truncated / max(1, counts.notes)
    return Finding("release.truncated_notes", share, counts.notes, "lower", low, high, detail=detail)


def refuse_failed(looked: Looked) -> None:
    """Raise GateError for gates that failed: then no note leaves."""
    if failed := [gate for gate in looked.gates if not gate.passed]:
        said = "; ".join(f"{gate.name} ({gate.value} against {gate.threshold})" for gate in failed)
        raise GateError(f"a gate failed, nothing was written: {said}", remedy=failed[0].remedy)


def _lines(counts: Counts, floor: Floor, looked: Looked) -> Iterator[str]:
    yield f"{counts.notes} notes, {counts.words:,} words; {counts.truncated} cut at the longest length"
    yield f"{floor.replaced:,} of {floor.words:,} words were below the rare-word floor and are <unk>"
    for gate in looked.gates:
        yield f"{'passed' if gate.passed else 'FAILED'}  {gate.name}: {gate.value} (at most {gate.threshold})"
    yield from (f"not tried: {what}" for what in NOT_TRIED)
