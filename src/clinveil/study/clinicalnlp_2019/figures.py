"""Figures: the privacy score with its floors, and what the notes are good for, by dropout."""

from __future__ import annotations

from collections.abc import Iterator

from clinveil.report.draw import Figure
from clinveil.study.chart import Point, lines
from clinveil.study.clinicalnlp_2019.plan import label_of
from clinveil.study.clinicalnlp_2019.results import Results


def figures(results: Results) -> dict[str, list[Figure]]:
    """The figures that have numbers, by the table that they stand below."""
    order = [f"{dropout:g}" for dropout in results.settings.dropout]
    one = lines("fig-privacy", "The privacy score by dropout", list(_privacy(results)), order, "nats", x="dropout")
    two = lines("fig-utility", "Utility by dropout", list(_utility(results)), order, "score", x="dropout")
    return {name: [figure] for name, figure in (("privacy", one), ("table-2", two)) if figure}


def _privacy(results: Results) -> Iterator[Point]:
    for dropout in results.settings.dropout:
        label, at = label_of(dropout), f"{dropout:g}"
        own = {"mode": "exact", "from": "the model"}
        score, floor = (results.of(f"attack.{name}", label, **own) for name in ("pdtp", "pdtp_reseed_floor"))
        if score is not None and score.value is not None and score.control is not None:
            yield Point("score", at, score.value, score.low, score.high)
            yield Point("placebo", at, score.control)
        if floor is not None and floor.value is not None:
            yield Point("reseed floor", at, floor.value, floor.low, floor.high)
        effect = results.of("attack.pdtp_effect", label, **own)
        if effect is not None and effect.value is not None:
            yield Point("effect at a word", at, effect.value, effect.low, effect.high)
        compat = results.of("attack.pdtp", label, mode="compat")
        if compat is not None and compat.value is not None:
            yield Point("score of paper C's code", at, compat.value, compat.low, compat.high)


def _utility(results: Results) -> Iterator[Point]:
    measures = (("utility.casing", "letter case", "model"), ("utility.nli", "inference", "vectors"))
    for measure, name, series in measures:
        for dropout in results.settings.dropout:
            found = results.of(measure, label_of(dropout), series=series)
            if found is not None and found.value is not None:
                yield Point(name, f"{dropout:g}", found.value, found.low, found.high)
        real = results.of(measure, "real notes", series=series)
        if real is not None and real.value is not None:
            for dropout in results.settings.dropout:
                yield Point(f"{name}, real notes", f"{dropout:g}", real.value, dashed=True)
