"""`clinveil attack scenario`: name target diagnoses for each name, as paper B's attacker does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinveil.cli.attack.association import Codes, Notes, Patients, VectorFiles
from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group

if TYPE_CHECKING:
    from clinveil.attacks.vectors.scenario import ScenarioPlan
    from clinveil.cli.attacked import Attacked
    from clinveil.core.finding import Finding
    from clinveil.corpus.people import Patient

app = typer.Typer(add_completion=False)
Targets = Annotated[
    Path | None, typer.Option("--targets", help="Target diagnoses or codes, one a line (default: the paper's 11).")
]


class ScenarioSettings(Settings):
    """Everything that `clinveil attack scenario` can be told."""

    notes: NotesSettings = group(NotesSettings)
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET

    metric: tuple[str, ...] = flag(("cityblock", "cosine"), "cityblock, cosine or euclidean; repeatable.")
    permutations: int = flag(999, "Permutations of names, for chance and P.", ge=19)
    draws: int = flag(1_000, "Random sets of targets.", ge=1)
    drawn: int = flag(30, "Targets of a random set.", ge=6)
    min_patients: int = flag(10, "Patients that a diagnosis must have to be drawn.", ge=1)
    everyone: int | None = flag(None, "Patients of the whole corpus: also measure the chain that ends in a diagnosis.")
    k: int | None = flag(None, "Names that the attacker puts together for the chain (default: the true pairs).", ge=1)


@settings_command(app, ScenarioSettings, name="scenario")
def scenario(
    settings: ScenarioSettings,
    vectors: VectorFiles,
    patients: Patients,
    codes: Codes,
    targets: Targets = None,
    notes: Notes = None,
    json: JsonOut = None,
) -> None:
    """Name target diagnoses for each name, farthest and nearest, beside chance (paper B, experiment 3)."""
    import secrets

    from clinveil.attacks.vectors.association import over_models
    from clinveil.attacks.vectors.scenario import scenario
    from clinveil.cli.attacked import attacked
    from clinveil.cli.findings import file_names, say_findings
    from clinveil.cli.progress import say_unless
    from clinveil.corpus.people import read_codes, read_patients

    known, meanings = list(read_patients(patients).values()), read_codes(codes)
    plan = _plan(settings, targets)
    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    models = attacked(vectors, notes, settings.notes, seed, say_unless(settings.quiet))
    findings: list[Finding] = []
    for model in models:
        found = scenario(model.vectors, known, meanings, model.rng, plan, counts=model.counts)
        findings += model.named([*found, *_chain(settings, model, known, meanings, plan)])
    title = f"diagnoses named from {file_names(vectors)} (seed {models[0].seed}; lower is safer)"
    say_findings("attack scenario", over_models(findings), seed=models[0].seed, json_out=json, title=title)


def _plan(settings: ScenarioSettings, targets: Path | None) -> ScenarioPlan:
    from clinveil.attacks.vectors.scenario import ScenarioPlan
    from clinveil.attacks.vectors.targets import PAPER_TARGETS, read_targets

    wanted: Sequence[str] = read_targets(targets) if targets else PAPER_TARGETS
    return ScenarioPlan(
        wanted, settings.metric, settings.permutations, settings.draws, settings.drawn, settings.min_patients
    )


def _chain(
    settings: ScenarioSettings, model: Attacked, missed: list[Patient], meanings: dict[str, str], plan: ScenarioPlan
) -> list[Finding]:
    """The chain on the names that Attack 1 puts together."""
    if settings.everyone is None:
        return []
    from clinveil.attacks.vectors.chain import ChainPlan, chain, reconstruct

    names, pairs = reconstruct(model.vectors, missed, settings.k, threads=settings.workers)
    how = ChainPlan(settings.everyone, plan.targets, plan.metrics, pairs)
    return chain(model.vectors, missed, meanings, names, model.rng, how)
