"""`synthesize` from beginning to end: notes in; a language model in the vault, and synthetic notes out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clinveil.core.files import default_vault, owner_only, refuse_existing, refuse_nested
from clinveil.core.finding import Finding
from clinveil.core.neural import need_torch
from clinveil.core.types import Say
from clinveil.corpus.open import open_corpus
from clinveil.lm.notes import read_notes
from clinveil.releases.settings import SynthesisSettings
from clinveil.releases.synthesis import Synthesis
from clinveil.releases.synthesis_model import MAKER
from clinveil.report.record import Gate


def nothing(line: str) -> None:
    """Say it to nobody."""


@dataclass(frozen=True)
class Synthesised:
    """What became of a run of `synthesize`: findings, gates, and the line about public seeds, where there is one."""

    findings: tuple[Finding, ...]
    gates: tuple[Gate, ...]
    mark: str | None


def synthesize(
    notes: Path,
    out: Path,
    settings: SynthesisSettings,
    *,
    source: Path | None = None,
    vault: Path | None = None,
    say: Say = nothing,
) -> Synthesised:
    """Train a language model on notes and write synthetic ones, if all gates pass (paper C).

    Args:
        out: one file where it has a known suffix, else a folder. vault: where model and key stay (OUT.vault).
        source: the model of an earlier run, to write with it again.

    Raises:
        GateError: a gate failed: no note leaves. InputError: the notes do not fit. UsageError: a place is taken.
    """
    safe = vault or default_vault(out)
    for role, place in (("NOTES", notes), ("--from", source), ("--patients", settings.patients)):
        refuse_nested(OUT=out, the_vault=safe, **{role: place})
    refuse_existing(out, force=settings.force, maker=MAKER)
    if settings.lm.neural and source is None:
        need_torch()
    read = read_notes(open_corpus(notes, settings.notes), prepared=settings.prepared)
    synthesis = Synthesis(settings, read, out, safe, source, say)
    with owner_only():
        found = synthesis.run()
    return Synthesised(tuple(found), tuple(synthesis.gates), synthesis.mark)
