"""Tables 1 to 4 of paper A with its numbers beside ours, the transfers, and what channels do to single tokens."""

from __future__ import annotations

from collections.abc import Iterator

from clinveil.core.finding import Finding
from clinveil.study.jamia_2020 import paper
from clinveil.study.jamia_2020.results import Results
from clinveil.study.plain import NONE, Row, Table, interval, number


def tables(results: Results) -> list[Table]:
    """All tables that have numbers."""
    made = [_examples(results), _corpus(results)]
    if results.similarity:
        made.append(_similarity(results))
    if results.references:
        made.append(_references(results))
    if results.classification:
        made.append(_classification(results))
        made += [table for table in (_transfers(results),) if table.rows]
    return [*made, *_tokens(results)]


def _examples(results: Results) -> Table:
    rows = tuple(results.examples.items())
    asks = "What an invented note looks like under each setting; the words in the place of its words are of your notes."
    return Table("table-1", "Table 1: an example note", asks, ("setting", "note"), rows)


def _corpus(results: Results) -> Table:
    said = results.corpus
    ours = (said["patients"], said["notes"], said["tokens"], said["types"])
    rows = tuple((name, theirs, f"{count:,}") for (name, theirs), count in zip(paper.TABLE_2, ours, strict=True))
    detail = said.get("detail", {})
    remarks = [f"Documents are cut after {results.settings.max_tokens:,} words, before anything is done."]
    if detail:
        remarks.append(
            f"{detail['classes']} classes; left out: {detail['without_label']} notes without a label, "
            f"{detail['notes_of_small_classes']} of classes under {detail['min_class']} notes; "
            f"{said['duplicates']} near-duplicates stay on one side of the split."
        )
    asks = "What was measured on: the notes as sampled, cut and labelled."
    return Table("table-2", "Table 2: the corpus", asks, ("", "paper", "here"), rows, tuple(remarks))


def _similarity(results: Results) -> Table:
    columns = [f"N = {n}" if n != "0" else "original" for n in results.settings.n]
    rows: list[Row] = []
    groups = dict.fromkeys((a, name, series) for a, name, series, _ in results.similarity)
    for algorithm, name, series in groups:
        cells, covered, pairs = [], "", 0
        for n in results.settings.n:
            mean = results.similarity.get((algorithm, name, series, n))
            cells.append(interval(mean.value, mean.low, mean.high) if mean else NONE)
            if mean:
                covered, pairs = f"{covered}{', ' if covered else ''}{mean.covered}", mean.pairs
        rows.append((f"{name}, {algorithm}" + (f", {series}" if series else ""), f"{covered} of {pairs}", *cells))
    for name, printed in paper.TABLE_3.items():
        rows.append((f"{name}, paper", "all", *(printed.get(n, NONE) for n in results.settings.n)))
    remarks = (
        "Mean of the repetitions with its 90 % t interval: it tells of chance in obfuscating and in training, on these "
        "notes and these pairs. Other pairs would move every number much further: findings.json has the 95 % bootstrap "
        "intervals over pairs.",
        "All pairs: one with a word that the vectors do not know is compared among fastText vectors of the same "
        "protected text. The other rows are of pairs that need none, under every setting its own pairs.",
    )
    asks = "Pearson correlation of cosines with people's scores: vectors retrained on each protected corpus."
    columns_all = ("list", "pairs scored", *columns)
    return Table("table-3", "Table 3: word similarity", asks, columns_all, tuple(rows), remarks)


def _references(results: Results) -> Table:
    rows = tuple(
        (f"{r['reference']}, {r['list']}", str(r["pairs"]), number(r["original"]), number(r["value"]))
        for r in results.references
    )
    asks = "Vectors of other text, on the pairs that both cover: the horizontal lines of Figure 1."
    heads = ("vectors, list", "pairs", "original notes", "other text")
    return Table("references", "Figure 1's references", asks, heads, rows)


def _key(finding: Finding) -> tuple[str, str, str, str]:
    return tuple(str(finding.detail.get(k) or "") for k in ("setting", "model", "vectors", "transfer"))  # type: ignore[return-value]


def _pairs(results: Results) -> Iterator[tuple[tuple[str, str, str, str], dict[str, Finding]]]:
    grouped: dict[tuple[str, str, str, str], dict[str, Finding]] = {}
    for finding in results.classification:
        side = str(finding.detail.get("side") or "loss")
        grouped.setdefault(_key(finding), {})[f"{finding.detail['metric']} {side}"] = finding
    return iter(grouped.items())


def _row(found: dict[str, Finding], metric: str) -> Row:
    ours, loss = found[f"{metric} released"], found[f"{metric} loss"]
    change = interval(points(loss.value), points(loss.high), points(loss.low), 1)
    return (interval(ours.value, ours.low, ours.high), change)


def points(loss: float | None) -> float | None:
    """A loss as a change in points."""
    return None if loss is None else 0.0 - 100 * loss


def _classification(results: Results) -> Table:
    rows: list[Row] = []
    for (setting, model, vectors, transfer), found in _pairs(results):
        if transfer:
            continue
        other = "micro_f1" if "micro_f1 loss" in found else "accuracy"
        control = found["macro_f1 original"].control
        name = f"{setting}; {model}" + (f" ({vectors})" if vectors else "")
        rows.append((name, *_row(found, "macro_f1"), *_row(found, other), number(control)))
    first = results.classification[0]
    heads = (
        "setting; model",
        "macro-F1",
        "change, points",
        "accuracy or micro-F1",
        "change, points",
        "shuffled labels",
    )
    remarks = (
        f"The paper: {paper.FIGURE_2}.",
        f"Chance (the most frequent class): macro-F1 {number(first.chance)}. 95 % intervals draw test patients anew; "
        "changes are paired on the same test notes. Where notes have no patient column each is a patient of its own: "
        "reviews of one film, say, may then stand on both sides of the split.",
        "Thresholds, strengths and epochs are chosen on validation notes, never on test notes.",
    )
    asks = "Trained and tested on protected text, against the same model on the original."
    return Table("table-4", "Table 4 and Figure 2: classification", asks, heads, tuple(rows), remarks)


def _transfers(results: Results) -> Table:
    rows = tuple((f"{key[3]}; {key[1]}", *_row(found, "macro_f1")) for key, found in _pairs(results) if key[3])
    asks = "Word vectors of one side, text of the other; against the original with its own vectors."
    heads = ("transfer", "macro-F1", "change, points")
    return Table("transfers", "The supplement's transfers", asks, heads, rows)


def _tokens(results: Results) -> list[Table]:
    if not results.tokens:
        return []
    rows, tenths = [], []
    for setting, found in results.tokens.items():
        by = {(f.measure, str(f.detail.get("label", ""))): f for f in found}

        def value(measure: str, label: str = "", by: dict[tuple[str, str], Finding] = by) -> str:
            hit = by.get((f"attack.{measure}", label))
            return number(hit.value) if hit and hit.value is not None else NONE

        recovered = next((f for f in found if f.measure == "attack.inversion"), None)
        names = ("name_unchanged", "name_to_name", "name_near")
        first = number(recovered.value) if recovered else NONE
        rows.append((setting, first, value("unchanged", "all words"), *(value(n, "all names") for n in names)))
        kept = by.get(("attack.unchanged", "all words"))
        if kept and kept.value:  # neighbours never keep a word: ten noughts say nothing
            tenths.append((setting, *(value("unchanged", f"tenth {i} by distance") for i in range(1, 11))))
    heads = ("setting", "recovered", "unchanged", "names unchanged", "names to names", "names within 2 letters")
    asks = (
        "Shares of tokens. Recovered: an attacker who has the channel guesses one draw (a lower bound: he reads no "
        "context). Names are words of the notes that can be read as a usual name and as nothing else."
    )
    far = "P(a word comes out as it went in) by tenth of the words, nearest neighbour close (1) to far (10)."
    made = [Table("tokens", "Single tokens", asks, heads, tuple(rows))]
    if tenths:
        columns = ("setting", *map(str, range(1, 11)))
        made.append(Table("tenths", "Unchanged by distance", far, columns, tuple(tenths)))
    return made
