"""Gates: conditions that must hold before a release may leave. If one does not hold, no `release/`
is created.

This module judges the notes as written: contents, accounting, variety, and copies in synthetic
notes. `attack_gates.py` judges what attacks find. The text of every gate is in `gates.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from math import exp, log
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks import PHRASE, CopiedPatients, CopyScan, FullNameIndex, scan_copies
from clinveil.channel import TokenTally
from clinveil.core import Finding, words
from clinveil.corpus import ENTERED_IN_ERROR, NOT_ENGLISH, Accounting, read_patients
from clinveil.lm import Audit, LayoutVocabulary, PlainNotes, Vocabulary
from clinveil.phi import ResidueTally
from clinveil.releases.check import OutputCheck
from clinveil.releases.synthesis_model import Checked, TrainHoldoutSplit, shared_text
from clinveil.report import CHECKS, UNLIMITED, Gate, Limit, Plain
from clinveil.stats import ALPHA, fisher_from

SKIPPED_SHARE = 0.01
# Below this number of different words, or effective number of words, a release retains almost
# nothing.
FEWEST_WORDS = 20
FEWEST_EFFECTIVE = 8
TRAINED_TASKS = {"utility.transfer": "classifier", "utility.sequence": "sentence labels"}
HALFWAY = 0.5  # of the way from random words to real notes
FAULT = "This is a program error. Do not release; report it."
SPANS = (10, 20, 50)  # words in a row of the copy search
PASS_LIST = "Pass the list of known patients (--patients FILE)."
NOT_SEARCHED = "No known-patient list was given, so the notes were not searched for their names."
NO_POWER = "No power: no pair of known name parts, real or invented, occurs in the notes."
SHARED = (
    "The model has no sequence of fewer than channel.min_patients patients, and limits repetition"
    " by one patient."
)
UNSEEN = "No gate on copies could detect a copy on these notes."
COPIES_HINT = (
    "Raise channel.ngram_patients, or lower channel.background. If templates cause many"
    " coincidental copies, raise test_share."
)
SEE = "Hold out more patients (test_share), or add patients or longer notes."
# Rows left out by rule (entered in error, not in English), not because of a
# failure.
PLANNED = frozenset({ENTERED_IN_ERROR, NOT_ENGLISH})


@cache
def _texts() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def gate(
    of: str,
    *,
    within: bool,
    value: Plain,
    limit: Plain,
    fill: Mapping[str, Any] = MappingProxyType({}),
    risk: str | None = None,
    unit: str | None = None,
    meaning: str | None = None,
    hint: str | None = None,
    power: str | None = None,
    by_construction: bool = False,
    undecided: bool = False,
    finding: Finding | None = None,
) -> Gate:
    """Return a gate with its text from `gates.toml`, as far as no other is given; `fill` replaces
    the names in braces.
    """
    texts = {name: text.format_map(fill) for name, text in _texts()[of].items()}
    return Gate(
        name=texts["name"],
        question=texts["question"],
        risk=texts.get("risk", CHECKS) if risk is None else risk,
        within=within,
        value=value,
        limit=limit,
        meaning=texts["meaning"] if meaning is None else meaning,
        hint=texts["hint"] if hint is None else hint,
        unit=texts.get("unit", "") if unit is None else unit,
        power=texts.get("power", "") if power is None else power,
        by_construction=by_construction,
        undecided=undecided,
        finding=finding,
    )


def judged(gates: Iterable[Gate], rules: Mapping[str, Limit]) -> tuple[Gate, ...]:
    """Return the gates with the limits of one audience.

    Gates on counts have their limit already, so only the absence of a limit changes them.
    """
    return tuple(_judged(one, rules.get(one.risk)) for one in gates)


def _judged(one: Gate, rule: Limit | None) -> Gate:
    if rule is None:
        return one
    default = ""
    if rule.changed:
        default = UNLIMITED if rule.default is None else f"{rule.default:g}"
    return replace(
        one,
        limit=None if rule.most is None else one.limit,
        strict=rule.audience == "public" and one.risk != "use",
        default=default,
    )


def sound(of: str, faults: int, *, within: bool | None = None) -> Gate:
    """Return a gate on a guarantee of the program: no fault is allowed."""
    within = faults == 0 if within is None else within
    return gate(of, within=within, value=faults, limit=0, hint=FAULT)


def output_gates(check: OutputCheck, tally: TokenTally, *, may_repeat: bool = False) -> list[Gate]:
    """Return the gates on the released words, read back from the release.

    may_repeat: words are drawn that do not depend on the source word, and can equal it by chance.
    """
    itself = check.self_replaced == 0 and tally.self_replaced == 0
    return [
        *([] if may_repeat else [sound("itself", check.self_replaced, within=itself)]),
        sound("unknown", check.out_of_vocabulary + check.stray),
        sound("floor", check.below_floor),
    ]


def variety_gate(check: OutputCheck) -> Gate:
    """Return the gate on variety: enough different words.

    The effective number of words is exp(entropy) of the released words' frequencies.
    """
    distinct = len(check.outputs)
    effective = round(effective_number(check.outputs), 1)
    few = distinct < FEWEST_WORDS
    value, least = (distinct, FEWEST_WORDS) if few else (effective, FEWEST_EFFECTIVE)
    return gate(
        "variety",
        within=value >= least,
        value=value,
        limit=f"at least {least}",
        unit="different words" if few else "effective number of words",
        power=(
            f"Exact: refuses fewer than {FEWEST_WORDS} different words, "
            f"or an effective number below {FEWEST_EFFECTIVE}."
        ),
    )


def use_gates(findings: Sequence[Finding]) -> list[Gate]:
    """Return the gate on use: a model trained on the release learns more than from random words.

    Judged are the tasks that a recipient would train for: a classifier, and labels of sentences.
    It refuses a release that is at or below the floor (random words) in all of them. It is not
    decided if the tests are so small that the release could still be halfway to real notes.
    """
    tasks = [f for f in findings if f.measure in TRAINED_TASKS]
    tested = [f for f in tasks if f.value is not None and f.high is not None]
    if not tested:
        why = next((f.why for f in tasks if f.why), "no task was tested: pass --label COLUMN")
        return [replace(gate("use", within=True, value=None, limit=0), meaning=why, undecided=True)]
    best = max(tested, key=lambda f: f.value or 0.0)
    is_better = (best.value or 0.0) > 0
    could_be_halfway = any((f.high or 0.0) > HALFWAY for f in tested)
    better = [TRAINED_TASKS[f.measure] for f in tested if (f.low or 0.0) > 0]
    others = [TRAINED_TASKS[f.measure] for f in tested if (f.low or 0.0) <= 0]
    shown = [f"better than random words: {', '.join(better)}"] if better else []
    shown += [f"not shown to be better: {', '.join(others)}"] if others else []
    number = [f"Best of {len(tested)} tasks"] if len(tested) > 1 else []
    return [
        gate(
            "use",
            within=is_better or could_be_halfway,
            value=best.value,
            limit=0,
            meaning=f"{'; '.join([*number, *shown])}.".capitalize(),
            undecided=not is_better,
            finding=best,
        )
    ]


def effective_number(counts: Mapping[str, int]) -> float:
    """Return exp(entropy) of a frequency table: the size of a uniform vocabulary with equal
    entropy; 0 if empty.
    """
    total = sum(counts.values())
    return exp(-sum(n / total * log(n / total) for n in counts.values() if n)) if total else 0.0


def accounting_gates(rows: Accounting, check: OutputCheck, *, balanced: bool = True) -> list[Gate]:
    """Return the gates that every note is accounted for and few failed; `balanced`: so is every
    token.
    """
    lost = abs(rows.read - rows.written - sum(rows.skipped.values()))
    foreign = check.unmatched + abs(check.notes - rows.written)
    failed = sum(n for reason, n in rows.skipped.items() if reason not in PLANNED)
    share = failed / rows.read if rows.read else 0.0
    faults = lost + foreign + check.unaligned
    return [
        sound("accounted", faults, within=faults == 0 and balanced),
        gate("failed", within=share <= SKIPPED_SHARE, value=share, limit=SKIPPED_SHARE),
    ]


def residue_gates(tally: ResidueTally, most: float | None) -> list[Gate]:
    """Return the gate on text that looks like an identifier and is unchanged by treatment; none
    without treatment.

    Args:
        most: allowed share of the notes, rounded up to a number of notes; None: no limit.
    """
    if not tally.notes:
        return []
    allowed = tally.notes if most is None else tally.allowed(most)
    return [
        gate(
            "residue",
            within=tally.notes_with_residues <= allowed,
            value=tally.notes_with_residues,
            limit=allowed,
            fill={"limit": "no limit" if most is None else f"{most:.2%}"},
            power=(
                f"Exact: refuses from {allowed + 1:,} notes on with a shape that is in no list of"
                " clinical shapes."
            ),
        )
    ]


def seed_gate(public: Sequence[str]) -> Gate:
    """Return the gate that nothing was derived from a public seed; `public` names what was."""
    secret = not public
    return gate(
        "seed",
        within=secret,
        value="secret key" if secret else "public seed",
        limit="secret key",
    )


@dataclass(frozen=True)
class Examined:
    """Findings on the written notes, and the gates derived from them."""

    gates: list[Gate]
    findings: list[Finding]


def examine(
    written: PlainNotes,
    expected: int,
    sides: TrainHoldoutSplit,
    vocabulary: Vocabulary | None,
    rng: Generator,
    *,
    span: int,
    feed: Path | None,
    checked: Checked | None = None,
) -> Examined:
    """Compare written notes with the training notes.

    Args:
        expected: number of generated notes. vocabulary: None for notes of public words. span:
            consecutive words that count as a copy. feed: known patients.
    """
    spans = tuple(sorted({*SPANS, span}))
    # Rare words are left out on all sides: a word that no model can write would split a copy.
    both = sides.training, sides.held_out
    seen, other = (
        (shared_text(side, vocabulary) if vocabulary else side).as_corpus() for side in both
    )
    before = checked if checked and len(checked.drawn) == len(written) else None
    compared = replace(written, texts=tuple(before.drawn)) if before else written
    scan = scan_copies(compared.as_corpus(), seen, other, rng, spans=spans)
    found = scan.findings
    gates = [sound("synthetic_accounted", abs(expected - len(set(written.note_ids))))]
    if vocabulary is not None:
        gates.append(
            sound("synthetic_floor", _below(written, vocabulary, before.invented if before else ()))
        )
    long, near, whole = _seeing(_copy_gates(scan, span))
    gates += [long, whole, near]
    if feed is None:
        missing = gate("known_names", within=True, value=None, limit=0, meaning=NOT_SEARCHED)
        gates.append(replace(missing, undecided=True, hint=PASS_LIST))
    else:
        names = known_names(written, feed, rng)
        found.append(names.finding)
        gates.append(_names(names))
    return Examined(gates, found)


def _copy_gates(scan: CopyScan, span: int) -> list[Gate]:
    """Return the gates on long, near and whole copies."""
    return [_copied(scan.own, span), _nearly_copied(scan.near), _copied_whole(scan.whole)]


def model_gates(scan: CopyScan, ngram_patients: int) -> list[Gate]:
    """Return the gates on copies that a model of shared word sequences wrote, and on its memory."""
    gates = [
        one if one.within else replace(one, hint=COPIES_HINT)
        for one in _copy_gates(scan, max(SPANS))
    ]
    power = f"The language model has no sequence of fewer than {ngram_patients} patients."
    return [*gates, replace(memory_gate(None), power=power)]


def _below(written: PlainNotes, vocabulary: Vocabulary, invented: Sequence[frozenset[str]]) -> int:
    """Count the words that are not in the vocabulary, which has only words of enough patients, and
    not invented.
    """
    allowed = vocabulary.words if isinstance(vocabulary, LayoutVocabulary) else frozenset[str]()
    pairs = zip_longest(written.texts, invented, fillvalue=frozenset[str]())
    return sum(
        word not in allowed and word not in own for text, own in pairs for word in words(str(text))
    )


@dataclass(frozen=True)
class _Rule:
    """Training patients copied (`count`), the number allowed (`may`), and the smallest number
    refused (`least`).
    """

    what: str
    count: int
    may: int
    least: int | None


def _copied(runs: Mapping[int, CopiedPatients], span: int) -> Gate:
    shorter = [runs[length] for length in sorted(runs) if length < span]
    tests = [
        _test(f"{patients.least} words in a row", patients, ALPHA / len(shorter))
        for patients in shorter
    ]
    return _copies_gate("copies", {"span": span}, runs[span], f"{span} words in a row", tests)


def _copied_whole(patients: CopiedPatients) -> Gate:
    same = patients.whole_notes
    assert same is not None
    fill = {"least": patients.least, "least_same": same.least}
    tests = [_test(f"a note of {same.least} words and numbers", same, ALPHA)]
    kind = f"{patients.least} words in one note"
    return _copies_gate("copied_whole", fill, patients, kind, tests)


def _nearly_copied(patients: CopiedPatients) -> Gate:
    kind = f"{patients.least} phrases of {PHRASE} words"
    return _copies_gate("copied_nearly", {"least": patients.least}, patients, kind, [])


def _test(kind: str, patients: CopiedPatients, level: float) -> _Rule:
    """Run Fisher's exact test on the training patients with copies of a kind."""
    visible = patients.visible
    least = fisher_from(visible, patients.patients, patients.held_out, patients.by_chance, level)
    return _Rule(kind, patients.copied, visible if least is None else least - 1, least)


def _copies_gate(
    of: str, fill: Mapping[str, Any], patients: CopiedPatients, kind: str, tests: list[_Rule]
) -> Gate:
    may = patients.allowed
    first = _Rule(kind, patients.copied, may, None if patients.refused_from is None else may + 1)
    rules = [first, *tests]
    shown = next((rule for rule in rules if rule.count > rule.may), first)
    rule = "No training patient may be copied"
    if may:
        rule = (
            f"Some held-out patients match by chance: refused at P < {ALPHA} (Fisher's exact test),"
            " and above their share or a tenth of the patients"
        )
    found = "" if shown is first else f" Refused for {shown.what}."
    return gate(
        of,
        within=shown.count <= shown.may,
        value=shown.count,
        limit=shown.may,
        fill=fill,
        meaning=(
            "Own words occur in no held-out note and with at most two training patients."
            f" {rule}.{found}"
        ),
        power=_copies_power(patients, kind, tests),
        undecided=all(rule.least is None for rule in rules),
    )


def _copies_power(patients: CopiedPatients, kind: str, tests: list[_Rule]) -> str:
    share = patients.visible / patients.patients
    seen = f"{share:.0%} of the training patients have {kind} of their own"
    tested = "; ".join(
        f"from {test.least} patients on with {test.what}"
        for test in tests
        if test.least is not None
    )
    tested = (
        f" Tested against held-out patients at {ALPHA} in all: refuses {tested}." if tested else ""
    )
    least = patients.refused_from
    if least is None:
        return (
            f"No power: no number of copied patients would be refused; {seen}."
            if not tested
            else f"Without the test none would be refused: {seen}.{tested}"
        )
    return (
        f"Refuses with 95 % from {least} copied patient{'s'[: least != 1]} on: {seen}.{tested} "
        "Paraphrases are not detected."
    )


def _seeing(gates: list[Gate]) -> list[Gate]:
    """Return the copy gates; if neither could detect a copy, the last one fails."""
    if not all(gate.outcome == "not decided" for gate in gates):
        return gates
    return [*gates[:-1], replace(gates[-1], within=False, meaning=UNSEEN, hint=SEE)]


def memory_gate(finding: Finding | None) -> Gate:
    """Return the gate that no training patient is remembered; None: a model of shared word
    sequences only.
    """
    if finding is None:
        return gate("memory", within=True, value=0, limit=0, by_construction=True, power=SHARED)
    numbers = finding.numbers
    power = (
        f"Refuses a patient whose tokens are {numbers['limit']:.1f} times as probable as the median"
        f" patient's, compared with shared n-grams. The highest ratio was {numbers['most']:.1f}."
    )
    return gate(
        "memory",
        within=not finding.count,
        value=finding.count,
        limit=0,
        power=power,
        finding=finding,
    )


def audit_gate(audit: Audit, epsilon: float) -> Gate:
    """Return the gate that an attack on canaries does not contradict epsilon."""
    bound = audit.epsilon
    highest = audit.highest
    power = (
        f"{audit.correct} of {audit.guesses} guesses about {audit.canaries:,} invented patients"
        " were correct. All correct, as without noise, would show an epsilon of at least"
        f" {highest:.2g}."
    )
    return gate(
        "audit",
        within=bound <= epsilon,
        value=round(bound, 3),
        limit=epsilon,
        unit="epsilon (lower bound, 95 %)",
        power=power,
        undecided=highest <= epsilon,
    )


@dataclass(frozen=True)
class KnownNames:
    """Known full names in written notes.

    Attributes:
        finding: `attack.known_names`. most_invented: the largest number of invented names.
        has_power: whether any pair of known name parts occurs in the notes.
    """

    finding: Finding
    most_invented: int
    has_power: bool


def known_names(written: PlainNotes, feed: Path, rng: Generator) -> KnownNames:
    """Measure `attack.known_names`: full names of known patients, compared with invented pairs of
    the same parts.
    """
    names = [person.name for person in read_patients(feed).values()]
    index = FullNameIndex(names, rng)
    hits = index.find([words(text) for text in written.texts])
    # Shuffled pairs can be real names, often so with few names; counting these would hide the worst
    # leak.
    known = np.isin(hits.code, np.concatenate([index.real.whole, index.real.ends]))
    by_set = np.bincount(
        hits.replicate[(hits.replicate == 0) | ~known], minlength=index.replicates + 1
    )
    real = int(by_set[0])
    made = by_set[1:]
    most_invented = int(made.max()) if made.size else 0
    has_power = bool(hits.row.size)
    finding = Finding(
        "attack.known_names",
        real,
        int(index.tested.sum()),
        "lower",
        control=float(made.mean()),
        numbers={"most_of_made_up": most_invented},
        unit="known full names",
        control_is="invented pairs of the same name parts, without pairs that are real names, mean",
        control_kind="negative",
        warning="" if has_power else NO_POWER,
    )
    return KnownNames(finding, most_invented, has_power)


def _names(names: KnownNames) -> Gate:
    most = names.most_invented
    power = f"Refuses from {most + 1} occurrences of a known full name on."
    return gate(
        "known_names",
        within=(names.finding.value or 0) <= most,
        value=names.finding.value,
        limit=most,
        power=power if names.has_power else NO_POWER,
        undecided=not names.has_power,
        finding=names.finding,
    )
