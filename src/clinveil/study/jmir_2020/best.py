"""The best of many models, with a P that pays for the choice."""

from __future__ import annotations

from collections.abc import Iterator

from clinveil.core.finding import Finding
from clinveil.report.numerals import p_value
from clinveil.study.jmir_2020.cells import Kind, hits, shown
from clinveil.study.jmir_2020.results import Results

LEVEL = 0.05


def best_names(results: Results) -> Iterator[str]:
    """Attack 1: the maximum statistic under the same re-pairings; and the ceiling."""
    for finding in results.findings:
        detail = finding.detail
        if finding.measure == "attack.names_best" and finding.value is not None:
            value, low, high = (shown(x, "count") for x in (finding.value, finding.low, finding.high))
            yield (
                f"Best of {detail['models']} models and metrics (picking it is a selection): {detail['model']}, "
                f"{detail['metric']}: {hits(finding)} of {detail['k']} ({value} %, 95 % {low} to {high}); P of the "
                f"largest of all models under the same re-pairings {p_value(finding.p or 0.0)}; "
                f"{detail['models_over_chance']} models are over chance so."
            )
    for finding in results.findings[:1]:
        detail = finding.detail
        yield (
            f"{detail['names_given']} names, {detail['name_tokens']} name tokens of which "
            f"{detail['name_tokens_not_ranked']} have no vector, {detail['true_pairs']} true pairs among "
            f"{detail['pairs']:,}; no list of {results.k} can score above "
            f"{shown(float(detail['ceiling'] or 0), 'count')} %."
        )


def best_of(results: Results, measure: str, kind: Kind) -> Iterator[str]:
    """The model of the smallest P, adjusted by Holm over the models and metrics of its measure and series."""
    found = [f for f in results.findings if f.measure == measure and f.value is not None]
    if not found:
        return
    best = min(found, key=lambda finding: (_p(finding), -abs(finding.value or 0.0)))
    said = [best.detail["model"], best.detail["metric"], best.detail.get("series"), best.detail.get("label")]
    over = sum(_p(finding) <= LEVEL for finding in found)
    which = ", ".join(str(part) for part in said if part)
    family = best.detail.get("models", len(found))
    yield (
        f"Most significant of {len(found)} (picking it is a selection): {which}: {shown(best.value, kind)} where "
        f"chance is {shown(best.chance, kind)}; P {p_value(_p(best))} after Holm over {family}; {over} of {len(found)} "
        "are significant so."
    )


def best_patients(results: Results, series: str) -> Iterator[str]:
    """The model with most significant patients, and its smallest P times patients and models."""
    measure = "attack.association_patients"
    found = [f for f in results.findings if f.measure == measure and f.detail.get("series") == series]
    found = [f for f in found if f.value is not None]
    if not found:
        return
    best = max(found, key=lambda finding: finding.value or 0.0)
    smallest = min(1.0, float(best.detail["smallest_p"] or 0.0) * best.n * len(found))
    floor = "; its P = 0 is count/n, which is no P" if best.detail["smallest_p"] == 0 else ""
    yield (
        f"Most of {len(found)} models and metrics (picking it is a selection): {best.detail['model']}, "
        f"{best.detail['metric']}: {best.count} of {best.n}; under permuted names "
        f"{shown(_permuted(best), 'count')} %; its smallest P times patients and models: {p_value(smallest)}{floor}."
    )
    if "warning" in best.detail:
        yield f"Beware: {best.detail['warning']}."


def draws_floor(results: Results, measure: str) -> Iterator[str]:
    """Says so where there are too few permuted orders for Holm ever to reject."""
    from clinveil.attacks.vectors.scenario import REPLICATES

    found = [f for f in results.findings if f.measure == measure and f.value is not None]
    families = [int(finding.detail.get("models") or len(found)) for finding in found]
    if families and min(families) / (REPLICATES + 1) > LEVEL:
        yield (
            f"With {REPLICATES} orders of other patients' names no P is below 1/{REPLICATES + 1}, so Holm over "
            f"{min(families)} numbers cannot reject: read each number beside its chance."
        )


def wilcoxon_says(results: Results, metric: str) -> Iterator[str]:
    """The paper's own test, and how often it rejects where names are permuted."""
    found = [f for f in results.findings if f.measure == "attack.association_wilcoxon" and f.detail["metric"] == metric]
    if not found:
        return
    rejected = sum(_p(finding) <= LEVEL for finding in found)
    shares = [float(finding.detail["rejected_with_names_permuted"] or 0.0) for finding in found]
    yield (
        f"The paper's Wilcoxon test rejects in {rejected} of {len(found)} models (Holm over models); with names "
        f"permuted, where nothing is to be found, it rejects at 5 % in {100 * sum(shares) / len(shares):.0f} % of "
        "permutations: patients share the diagnosis vectors."
    )


def _p(finding: Finding) -> float:
    value = finding.detail.get("p_over_models")
    return value if isinstance(value, float) else 1.0


def _permuted(finding: Finding) -> float | None:
    value = finding.detail.get("names_permuted")
    return value if isinstance(value, float) else finding.control
