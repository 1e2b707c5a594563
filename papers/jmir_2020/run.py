"""Repeat paper B on your notes: train word vectors on notes with missed names, and attack them.

    python -m papers.jmir_2020.run NOTES --patients FILE --codes FILE -o OUT

Run the same command again to resume. All of OUT is secret.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from joblib import Parallel, delayed  # type: ignore[import-untyped]  # of scikit-learn

from clinveil import UsageError
from clinveil.attacks import over_models
from papers.jmir_2020.settings import FIGURE_3, GridSettings, models
from papers.jmir_2020.steps import (
    AttackPlan,
    Inputs,
    Removal,
    attack,
    attack_names,
    frequency_curve,
    remove_names,
    train,
)
from papers.jmir_2020.tables import ALL_NAMES, GridResults, tables
from papers.running import Cache, command_line, exit_code_of, settings_of
from papers.tables import Results, Table, from_dicts, read_paper, write_results

HERE = Path(__file__).parent


@dataclass(frozen=True)
class PaperRun:
    """Results and tables of one run, with the counts that the page begins with."""

    results: GridResults = field(repr=False)
    tables: Sequence[Table]
    counts: dict[str, object]


def repeat_paper(inputs: Inputs, settings: GridSettings, cache: Cache) -> PaperRun:
    """Run all steps that are not in the cache. Raises UsageError if no model could be attacked."""
    removal = Removal(settings.mode, settings.miss_rate, settings.seed, settings.redrawn)
    notes = cache.run(remove_names, inputs, removal)
    grid = models(settings)
    plan = AttackPlan(
        permutations=settings.permutations,
        patient_draws=settings.patient_draws,
        scenario_draws=settings.scenario_draws,
        k=settings.k,
        targets=settings.target,
    )
    each_pair = [(model, metric) for model in grid for metric in settings.metric]
    workers = Parallel(n_jobs=settings.workers)
    workers(delayed(cache.run)(train, inputs, removal, model) for model in grid)
    attacks = workers(
        delayed(cache.run)(attack, inputs, removal, model, metric, plan)
        for model, metric in each_pair
    )
    named = cache.run(
        attack_names, inputs, removal, tuple(grid), settings.metric, settings.k, settings.draws
    )
    missing = dict(named.missing)
    of_diagnoses = []
    for (model, metric), findings in zip(each_pair, attacks, strict=True):
        if isinstance(findings, str):
            missing[f"{model.label}, {metric}"] = findings
        else:
            of_diagnoses += from_dicts(findings)
    findings = [*from_dicts(named.findings), *over_models(of_diagnoses)]
    if not findings:
        raise UsageError("no model could be attacked", hint=next(iter(missing.values()), ""))
    if settings.figure_3:
        everybody = Removal("none", 1.0, settings.seed, everyone=True)
        curve = cache.run(frequency_curve, inputs, everybody, FIGURE_3, settings.permutations)
        findings += [replace(point, series=ALL_NAMES) for point in from_dicts(curve)]
    results = GridResults(Results(tuple(findings)), settings, named.k, missing)
    counts: dict[str, object] = {
        "notes": notes.table.num_rows,
        "patients": notes.patients,
        "missed": len(notes.missed),
        "mode": settings.mode,
        "redrawn": "; control: names redrawn in every note" if settings.redrawn else "",
    }
    return PaperRun(results, tables(results, read_paper(HERE / "paper.toml")), counts)


def run(notes: Path, patients: Path, codes: Path, out: Path, settings: GridSettings) -> PaperRun:
    """Repeat the paper, and write `tables.md` and `findings.json` to the private folder `out`."""
    inputs = Inputs.read(notes, patients, codes, settings.notes)
    done = repeat_paper(inputs, settings, Cache(out))
    write_results(
        out,
        read_paper(HERE / "paper.toml"),
        done.counts,
        done.tables,
        done.results.findings,
        settings.for_page(),
        name="papers jmir_2020",
        seed=settings.seed,
    )
    return done


def main() -> None:
    """Run the script with the arguments of the command line."""
    parser = command_line(str(__doc__).splitlines()[0], HERE / "settings.toml")
    parser.add_argument("--patients", type=Path, required=True, help="patients.parquet, with names")
    parser.add_argument("--codes", type=Path, required=True, help="codes.csv: code, description")
    arguments = parser.parse_args()
    settings = settings_of(GridSettings, arguments)
    run(arguments.notes, arguments.patients, arguments.codes, arguments.out, settings)


if __name__ == "__main__":
    sys.exit(exit_code_of(main))
