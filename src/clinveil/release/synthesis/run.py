"""The job from notes to synthetic notes; what was trained stays in the vault, so that a killed run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np

from clinveil.core.errors import GateError
from clinveil.core.files import private_text, whole
from clinveil.core.files import sha256 as file_sha256
from clinveil.core.finding import Finding
from clinveil.core.keys import Key
from clinveil.core.neural import device_named
from clinveil.corpus.file_format import suffix_of
from clinveil.corpus.people import read_patients
from clinveil.lm.byte_pairs import need_byte_pairs
from clinveil.lm.model import fit_of
from clinveil.lm.notes import PlainNotes, encode
from clinveil.lm.ready import ready
from clinveil.lm.sampling import Drawing, lanes_for
from clinveil.release.manifest import released_files, write_companions
from clinveil.release.synthesis.card import render_card
from clinveil.release.synthesis.floor import Floor
from clinveil.release.synthesis.gates import Looked, look
from clinveil.release.synthesis.record import (
    TEST_SEED,
    Account,
    full_manifest,
    lines,
    public_manifest,
    public_seeds,
    seed_mark,
)
from clinveil.release.synthesis.settings import SynthesisSettings
from clinveil.release.synthesis.sides import kept_aside
from clinveil.release.synthesis.trained import Trained, load_trained, train_anew
from clinveil.release.synthesis.vault import MANIFEST, RunVault
from clinveil.release.synthesis.write import MAKER, Counts, Wanted, draw_notes, read_back, write_to

Say = Callable[[str], None]
ALONE = "one file, without companions: an OUT without a suffix is a folder with README.md, manifest.json and SHA256SUMS"


@dataclass
class Synthesis:
    """One run.

    Attributes:
        source: a folder of a model that was trained before, or None.
        mark: after the run, the line about public seeds; None where there is none.
    """

    settings: SynthesisSettings
    notes: PlainNotes = field(repr=False)
    out: Path
    vault: Path
    source: Path | None
    say: Say
    mark: str | None = field(default=None, init=False)

    def run(self) -> list[Finding]:
        """Train (or go on, or take the model given), write, look, and let the notes out.

        Raises:
            GateError: a gate failed; the model stays in the vault, no note leaves. InputError, UsageError: see there.
        """
        before = self._refused_early()
        place = RunVault(self.vault, self.out, self._asked(), self.settings.seed)
        key, seed = place.open(force=self.settings.force)
        try:
            found = self._make(key, seed, before or self._model(seed))
        except BaseException:
            place.give_up()
            raise
        place.finish()
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
        kept_aside(len(set(self.notes.patients)), self.settings.held_out)
        return None

    def _make(self, key: Key, seed: int, trained: Trained) -> list[Finding]:
        """Write, look, and let out."""
        found = self._fit(trained)
        floor = Floor.of(trained.sides.training, self.settings.min_patients)
        self.mark = seed_mark(public_seeds(key, trained), self.out)
        with whole(self.out, force=self.settings.force, maker=MAKER) as part:
            counts, written = self._write(trained, key, floor, part)
            looked = self._look(written, counts, trained, floor, seed)
            found += [_truncated(counts), _unknown(counts, floor), *looked.findings]
            account = Account(self.settings, trained, key, seed, counts, floor, looked.gates, found)
            self._keep(account)
            refuse_failed(looked)
            if not suffix_of(self.out):
                files = released_files(part)
                write_companions(part, render_card(account, files), public_manifest(account, files))
        self.say(ALONE if suffix_of(self.out) else f"whoever receives {self.out.name} can check it: clinveil verify")
        return found

    def _asked(self) -> str:
        """A hash of the notes and of all settings that change what comes out."""
        free = {"workers", "quiet", "force", "batch", "device", "patients"}
        hashed = sha256(json.dumps(self.settings.flat(free), sort_keys=True).encode())
        if self.settings.patients is not None:  # a gate that failed with the names must not be passed by without them
            hashed.update(file_sha256(self.settings.patients).encode())
        if self.source is not None:
            hashed.update(folder_digest(self.source).encode())
        for row in zip(self.notes.note_ids, self.notes.patients, self.notes.texts, strict=True):
            hashed.update(repr(row).encode("utf-8", "surrogatepass"))
        return hashed.hexdigest()

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
        with ready(model, threads=self.settings.workers):
            fit = fit_of(model, encode(trained.sides.held_out.texts, model.vocabulary))
        return perplexity_findings(model, fit, trained.sides.held_out, "held out")

    def _write(self, trained: Trained, key: Key, floor: Floor, part: Path) -> tuple[Counts, PlainNotes]:
        how, counts, training = self.settings, Counts(), trained.sides.training
        drawing = Drawing(lanes_for(how.count or len(training), how.batch), how.longest, how.temperature, how.top_p)
        wanted = Wanted(how.count, training.words)
        batches = draw_notes(trained.model, key, drawing, floor, wanted, counts, self.say)
        with ready(trained.model, double=how.exact, threads=how.workers):
            path = write_to(part, self.out, batches, TEST_SEED if public_seeds(key, trained) else None)
        return counts, read_back(path)

    def _look(self, written: PlainNotes, counts: Counts, trained: Trained, floor: Floor, seed: int) -> Looked:
        how, rng = self.settings, np.random.default_rng([seed, 1])
        return look(written, counts.notes, trained.sides, floor, rng, span=how.span, feed=how.patients)

    def _keep(self, account: Account) -> None:
        manifest = json.dumps(full_manifest(account), indent=1, ensure_ascii=False)
        private_text(self.vault / MANIFEST, manifest + "\n")
        for line in lines(account):
            self.say(line)


def folder_digest(folder: Path) -> str:
    """SHA-256 of the files of a folder and their names; "" where there is none."""
    files = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    return " ".join(f"{file.name} {file_sha256(file)}" for file in files)


def _truncated(counts: Counts) -> Finding:
    from clinveil.stats import wilson

    low, high = wilson(counts.truncated, counts.notes)
    detail = {"without_a_word": counts.empty}
    share = counts.truncated / max(1, counts.notes)
    return Finding(
        "release.truncated_notes",
        share,
        counts.notes,
        "lower",
        low,
        high,
        detail=detail,
        unit="notes",
        count=counts.truncated,
        method="Wilson, 95 %",
    )


def _unknown(counts: Counts, floor: Floor) -> Finding:
    """`release.unknown_words`: of the words written, the share of `<unk>`; counted, so without an interval."""
    share = counts.unknown / max(1, counts.words)
    detail = {"below_floor": floor.replaced}
    return Finding(
        "release.unknown_words", share, counts.words, "lower", detail=detail, unit="words", count=counts.unknown
    )


def refuse_failed(looked: Looked) -> None:
    """Raise GateError for gates that failed: then no note leaves."""
    if failed := [gate for gate in looked.gates if not gate.passed]:
        said = "; ".join(f"{gate.name} ({gate.value} against {gate.threshold})" for gate in failed)
        raise GateError(f"a gate failed, nothing was written: {said}", remedy=failed[0].remedy)
