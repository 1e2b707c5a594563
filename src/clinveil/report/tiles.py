"""The five tiles of the first screen: what was replaced, what identifiers are left, the strongest attack, use, seal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clinveil.report.cells import Row, row
from clinveil.report.edition import hidden
from clinveil.report.numerals import NONE, SPACE, Number, number, share, small
from clinveil.report.record import Edition, ReleaseRecord, TokenRow
from clinveil.report.summarise import badness, furthest


@dataclass(frozen=True, slots=True)
class Tile:
    """A head, one number, and lines of words below it; `anchor` is the section that holds the whole story."""

    head: str
    figure: Number
    lines: tuple[str, ...]
    anchor: str


def tiles(record: ReleaseRecord) -> list[Tile]:
    """The five tiles, in reading order. No overall score is made of them."""
    return [_replaced(record), _identifiers(record), _strongest(record), _useful(record), _seal(record)]


def _replaced(record: ReleaseRecord) -> Tile:
    words = [r for r in record.accounting if r.kind == "words"] or list(record.accounting)
    total, everything = TokenRow.total(words), TokenRow.total(record.accounting)
    figure = number(total.replaced / total.seen if total.seen else None, "share")
    lines = (
        f"of {total.seen:,} source words were replaced",
        f"{total.kept:,} kept as they were, {total.self_replaced:,} drawn as themselves, {total.dropped:,} dropped",
        f"of all {everything.seen:,} tokens {everything.dropped:,} were dropped (numbers, punctuation, other)",
    )
    return Tile("Words replaced", figure, lines, "data")


def _identifiers(record: ReleaseRecord) -> Tile:
    named = ("attack.own_name", "attack.other_names")
    rows = [row(f, record.edition) for f in record.findings if f.measure.startswith(("attack.own_", *named))]
    numbers = [r for r in rows if r.finding.measure not in named and r.finding.value is not None]
    if not numbers:
        lines = ("No number or address of a known patient could be looked for: none was given.",)
        return Tile("Own identifiers left", Number("not searched"), (*lines, *_names(rows, named)), "attacks")
    sought, count = sum(r.finding.n for r in numbers), round(sum(_successes(r) for r in numbers))
    figure = people(count, "numbers", record)
    lines = (f"of {sought:,} numbers and addresses of known patients stand in their own notes",)
    return Tile("Own identifiers left", figure, (*lines, *_names(rows, named)), "attacks")


def _successes(shown: Row) -> float:
    count = shown.finding.count
    return (shown.finding.value or 0.0) * shown.finding.n if count is None else count


def _names(rows: Sequence[Row], named: Sequence[str]) -> list[str]:
    measured = [r for r in rows if r.finding.measure in named and r.finding.value is not None]
    return [f"{r.short.lower()}: {r.value.text} of {r.n.text} {r.unit} (chance {r.chance.text})" for r in measured]


def _strongest(record: ReleaseRecord) -> Tile:
    rows = attack_rows(record)
    if not rows:
        return Tile("Strongest attack", Number("not measured"), ("No attack with a chance level was run.",), "attacks")
    top = max(rows, key=lambda r: badness(r.finding))
    where = f"{top.ends[0].text} to {top.ends[1].text}" if top.ends else "exact, no sampling"
    if top.hidden:
        return Tile("Strongest attack", top.value, (f"successes of {top.n.text} {top.unit}",), "attacks")
    lines = (
        f"success; chance is {top.chance.text}, so {points(badness(top.finding))} above it",
        f"interval: {where}",
        f"the largest above chance of {len(rows)} figures: {top.short.lower()}, {top.label}",
        _attacker(top),
    )
    return Tile("Strongest attack", top.value, lines, "attacks")


def _attacker(shown: Row) -> str:
    """Who reads so much, as far as the finding says it."""
    detail = shown.finding.detail
    if not detail.get("knowledge") and not detail.get("attacker"):
        return "by a thief of the vault's vectors who reads no context"
    thief = detail.get("attacker") == "with the channel" or "the channel" in str(detail.get("knowledge", ""))
    who = "by a thief of the vault's vectors or channel" if thief else "by a recipient"
    return f"{who}; all attackers stand in the table of the three criteria"


def points(difference: float) -> str:
    """A difference of two shares in percentage points."""
    return f"{100 * difference:.1f}{SPACE}points".replace("-", "−")


def attack_rows(record: ReleaseRecord) -> list[Row]:
    """Shares with a chance level where lower is safer: for each measure and stratum the one furthest above chance."""
    rows = [row(f, record.edition) for f in record.findings if f.measure.startswith("attack.") and f.better == "lower"]
    shares = [r for r in rows if r.kind == "share" and r.chance.value is not None and r.finding.value is not None]
    return furthest(shares)


def utility_pairs(record: ReleaseRecord) -> list[tuple[str, Row, Row]]:
    """(what, original, released) for each label column that was measured on both sides."""
    rows = [row(f, record.edition) for f in record.findings if f.measure.startswith("utility.")]

    def side(word: str) -> dict[tuple[str, str], Row]:
        sides = [r for r in rows if r.finding.detail.get("side") == word and r.finding.value is not None]
        sides = [r for r in sides if "accuracy" not in r.finding.measure]
        return {(r.finding.measure, str(r.finding.detail.get("label", ""))): r for r in sides}

    original, released = side("original"), side("released")
    return [(name[1] or name[0], original[name], released[name]) for name in original if name in released]


def _useful(record: ReleaseRecord) -> Tile:
    pairs = utility_pairs(record)
    if not pairs:
        return Tile("Use that is kept", Number("not measured"), ("No label column was given (--label).",), "utility")

    def kept(pair: tuple[str, Row, Row]) -> float:
        return (pair[2].finding.value or 0.0) / (pair[1].finding.value or 1.0)

    worst = min(pairs, key=kept)
    lines = (
        f"of the original score: {worst[2].value.text} against {worst[1].value.text} on “{worst[0]}”",
        f"chance is {worst[2].chance.text}",
        *_classes(worst[2], record.edition),
        f"the worst of {len(pairs)} label columns" if len(pairs) > 1 else "the one label column that was measured",
    )
    return Tile("Use that is kept", Number(share(kept(worst)), kept(worst)), lines, "utility")


def _classes(shown: Row, edition: Edition) -> list[str]:
    """How much of the column was measured at all."""
    detail = shown.finding.detail
    classes, merged, notes = (detail.get(name) for name in ("classes_in_notes", "classes_merged", "notes_share"))
    if not isinstance(classes, int) or not isinstance(merged, int) or not isinstance(notes, float):
        return []
    lone = f"{classes - merged} of {classes} classes" + (" and all others as one" if merged and notes == 1 else "")
    few = hidden(int(detail.get("notes_of_small_classes") or 0), "notes", edition)
    return [f"measured on {'all but a few' if few else share(notes)} of the labelled notes: {lone}"]


def _seal(record: ReleaseRecord) -> Tile:
    facts = [f"{fact.label}: {brief(fact.value)}" for fact in record.provenance[:3]]
    key = "TEST SEED: not for release" if record.test_seed else "secret key, kept in the vault"
    return Tile("Seal", Number(brief(record.run) or NONE), (f"clinveil {record.version}, {key}", *facts), "provenance")


def brief(value: object) -> str:
    """A value in a few characters: long hashes are cut."""
    shown = str(value)
    return shown if len(shown) <= 24 else shown[:12] + "…"


def people(count: int | None, unit: str, record: ReleaseRecord) -> Number:
    """A count of people or notes as this edition may print it."""
    return small() if hidden(count, unit, record.edition) else number(count, "count")
