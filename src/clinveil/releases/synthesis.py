"""The job from notes to synthetic notes; what was trained stays in the vault, so that a killed run goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.core.errors import GateError
from clinveil.core.files import private_text, remove
from clinveil.core.finding import Finding
from clinveil.core.keys import TEST_SEED, Key
from clinveil.core.neural import device_named
from clinveil.core.runfolder import FREE, Kind, run_folder, run_hash
from clinveil.core.types import Say
from clinveil.core.whole import whole
from clinveil.corpus.file_format import suffix_of
from clinveil.corpus.people import read_patients
from clinveil.lm.model import fit_of
from clinveil.lm.notes import PlainNotes, encode
from clinveil.lm.sampling import SamplingConfig, batch_size_for
from clinveil.lm.vocabulary import need_byte_pairs
from clinveil.releases.manifest import Account, released_files, write_companions
from clinveil.releases.settings import SynthesisSettings
from clinveil.releases.synthesis_gates import Examined, examine
from clinveil.releases.synthesis_model import (
    MAKER,
    STATE,
    Counts,
    Floor,
    Trained,
    draw_notes,
    load_trained,
    n_held_out,
    read_back,
    train_anew,
    write_to,
)
from clinveil.releases.synthesis_record import Synthetic, public_seeds, seed_mark
from clinveil.report.record import Gate

MANIFEST = "manifest.json"
_IN_MODEL = ("SECRET.txt", "vocabulary.json", "counts.npy", "model.safetensors", "model.json")
README = """The secrets of a run of `clinveil synthesize`. SECRET: none of this may leave.

key.bin        every draw comes from it
model/         the language model; it remembers the notes that it was trained on
manifest.json  what was run, counts, gates and findings; no note text
"""
KIND = Kind(
    what="vault of this command",
    state="run.json",
    own=frozenset({MANIFEST, STATE, "model/", *(f"model/{name}" for name in _IN_MODEL)}),
    notes={"README.txt": README},
)
NO_MATTER = FREE | {"batch", "device", "patients"}
ALONE = "one file, without companions: an OUT without a suffix is a folder with README.md, manifest.json and SHA256SUMS"


@dataclass
class Synthesis:
    """One run.

    Attributes:
        source: a folder of a model that was trained before, or None.
        mark, gates: after the run, the line about public seeds (None where there is none), and how the gates ended.
    """

    settings: SynthesisSettings
    notes: PlainNotes = field(repr=False)
    out: Path
    vault: Path
    source: Path | None
    say: Say
    mark: str | None = field(default=None, init=False)
    gates: Sequence[Gate] = field(default=(), init=False)

    def run(self) -> list[Finding]:
        """Train (or go on, or take the model given), write, look, and let the notes out.

        Raises:
            GateError: a gate failed; the model stays in the vault, no note leaves. InputError, UsageError: see there.
        """
        before = self._refused_early()
        with run_folder(self.vault, KIND, self._asked(), force=self.settings.force, made=self.out) as folder:
            key = folder.key(self.settings.seed)
            seed = training_seed(key)
            found = self._make(key, seed, before or self._model(seed))
            remove(self.vault / STATE)
            folder.finish()
        return found

    def _refused_early(self) -> Trained | None:
        """Find what can be found wrong before anything is made; the model of `source`, where there is one."""
        if self.settings.patients is not None:
            read_patients(self.settings.patients)
        if self.source is not None:
            return load_trained(self.source, self.notes, self.settings, before=True)
        if self.settings.lm.neural and self.settings.lm.device != "cpu":
            device_named(self.settings.lm.device)
        if not self.settings.lm.word_vocabulary:
            need_byte_pairs()
        n_held_out(len(set(self.notes.patients)), self.settings.held_out)
        return None

    def _make(self, key: Key, seed: int, trained: Trained) -> list[Finding]:
        """Write, look, and let out."""
        found = self._fit(trained)
        floor = Floor.of(trained.sides.training, self.settings.min_patients)
        self.mark = seed_mark(public_seeds(key, trained), self.out)
        with whole(self.out, force=self.settings.force, maker=MAKER) as part:
            counts, written = self._write(trained, key, floor, part)
            rng, how = np.random.default_rng([seed, 1]), self.settings
            looked = examine(written, counts.notes, trained.sides, floor, rng, span=how.span, feed=how.patients)
            found += [_truncated(counts), _unknown(counts, floor), *looked.findings]
            made = Synthetic(self.settings, trained, key, seed, counts, floor)
            account = made.account(looked.gates, found)
            self.gates = looked.gates
            self._keep(made, account)
            refuse_failed(looked)
            if not suffix_of(self.out):
                files = released_files(part)
                write_companions(part, made.card(account, files), account.manifest("external", files))
        self.say(ALONE if suffix_of(self.out) else f"whoever receives {self.out.name} can check it: clinveil verify")
        return found

    def _asked(self) -> str:
        """A hash of the notes and of all settings that change what comes out."""
        notes = sha256()
        for row in zip(self.notes.note_ids, self.notes.patients, self.notes.texts, strict=True):
            notes.update(repr(row).encode("utf-8", "surrogatepass"))
        # The feed counts too: a gate that failed with the names must not be passed by without them.
        return run_hash(self.settings, notes.hexdigest(), self.settings.patients, self.source, free=NO_MATTER)

    def _model(self, seed: int) -> Trained:
        """The model of this run: trained before a kill, or trained now."""
        place = self.vault / "model"
        if (place / "model.json").exists():
            return load_trained(place, self.notes, self.settings, before=False)
        return train_anew(self.notes, self.settings, seed, self.vault, self.say)

    def _fit(self, trained: Trained) -> list[Finding]:
        """Perplexity of the notes kept aside."""
        from clinveil.utility.perplexity import perplexity_findings

        model = trained.model
        with model.ready(threads=self.settings.workers):
            fit = fit_of(model, encode(trained.sides.held_out.texts, model.vocabulary))
        return perplexity_findings(model, fit, trained.sides.held_out, "held out")

    def _write(self, trained: Trained, key: Key, floor: Floor, part: Path) -> tuple[Counts, PlainNotes]:
        how, counts, training = self.settings, Counts(), trained.sides.training
        drawing = SamplingConfig(
            batch_size_for(how.count or len(training), how.batch), how.longest, how.temperature, how.top_p
        )

        def enough() -> bool:
            return counts.words >= training.words if how.count is None else counts.notes >= how.count

        batches = draw_notes(trained.model, key, drawing, floor, enough, counts, self.say)
        with trained.model.ready(double=how.exact, threads=how.workers):
            path = write_to(part, self.out, batches, TEST_SEED if public_seeds(key, trained) else None)
        return counts, read_back(path)

    def _keep(self, made: Synthetic, account: Account) -> None:
        manifest = json.dumps(made.vault_manifest(account), indent=1, ensure_ascii=False)
        private_text(self.vault / MANIFEST, manifest + "\n")
        for line in made.lines(account.gates):
            self.say(line)


def training_seed(key: Key) -> int:
    """The seed of split and training: the public one, or one that is as secret as the key."""
    return key.digest("training seed") % 2**31 if key.test_seed is None else key.test_seed


def _truncated(counts: Counts) -> Finding:
    """`release.truncated_notes`: of the notes written, those that were cut at the longest length."""
    from clinveil.stats import wilson

    low, high = wilson(counts.truncated, counts.notes)
    share, detail = counts.truncated / max(1, counts.notes), {"without_a_word": counts.empty}
    told: dict[str, Any] = {"unit": "notes", "count": counts.truncated, "method": "Wilson, 95 %"}
    return Finding("release.truncated_notes", share, counts.notes, "lower", low, high, detail=detail, **told)


def _unknown(counts: Counts, floor: Floor) -> Finding:
    """`release.unknown_words`: of the words written, the share of `<unk>`; counted, so without an interval."""
    told: dict[str, Any] = {"unit": "words", "count": counts.unknown, "detail": {"below_floor": floor.replaced}}
    return Finding("release.unknown_words", counts.unknown_share, counts.words, "lower", **told)


def refuse_failed(looked: Examined) -> None:
    """Raise GateError for gates that failed: then no note leaves."""
    if failed := [gate for gate in looked.gates if not gate.passed]:
        said = "; ".join(f"{gate.name} ({gate.value} against {gate.threshold})" for gate in failed)
        raise GateError(f"a gate failed, nothing was written: {said}", remedy=failed[0].remedy)
