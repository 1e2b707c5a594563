"""An invented release for the tests of the report: every number and word here is made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clinveil.attacks import GATED, above_chance, target_of
from clinveil.core import Cell, Finding, GapScores
from clinveil.report import (
    AUDIENCES,
    CHECKS,
    AlignedNote,
    AlignedToken,
    Audience,
    Column,
    CorpusFacts,
    Fact,
    Gate,
    Limit,
    Limits,
    PhiCount,
    ReleaseRecord,
    TokenRow,
    Verdict,
)
from clinveil.report.risks import NAMES
from clinveil.stats import clopper_pearson

CANARIES = ("Zanzibarovich", "quibblewort", "Maplethorpe")
_SOURCE = (
    "Patient Zanzibarovich seen today with quibblewort rash , 3 days ; "
    "lives in Maplethorpe . Plan : review in 2 weeks"
)
_OUT = (
    "Individual Hastings assessed yesterday without papular eruption - # hours - resides near"
    " Brookdale - Plan - recheck at # months"
)


def _token(source: str, released: str) -> AlignedToken:
    if released == "-":
        return AlignedToken(source, "", "dropped")
    mark = "phi" if source in CANARIES[::2] else "masked" if released == "#" else "replaced"
    mark = "kept" if source == released else "unknown" if source == CANARIES[1] else mark
    return AlignedToken(source, released, mark)  # type: ignore[arg-type]


def note(title: str = "Note 1 of 2, sampled from the notes with the rarest words") -> AlignedNote:
    """A note with a word of every mark; its source words include the canaries."""
    pairs = [_token(s, r) for s, r in zip(_SOURCE.split(), _OUT.split(), strict=True)]
    return AlignedNote(title, (*pairs, AlignedToken("\n", "", "dropped"), *pairs * 4))


def share(
    target: str,
    adversary: str,
    hits: int,
    n: int,
    chance: float,
    *,
    gated: bool = False,
    unit: str = "tokens",
) -> Finding:
    """A finding of the adversary table, with a Clopper-Pearson interval."""
    low, high = clopper_pearson(hits, n)
    measure = "attack.linkage" if unit == "notes" else "attack.reading.names"
    return Finding(
        measure, hits / n, n, "lower", low, high, chance, unit=unit, count=hits,
        cell=Cell(adversary, target), gated=gated,
        method="Clopper-Pearson 95 %", source="docs/attacks.md",
    )  # fmt: skip


def missing(measure: str, why: str, cell: Cell | None = None, *labels: str) -> Finding:
    """A finding without a value."""
    return Finding(measure, None, 0, why=why, cell=cell, labels=labels)


def use(
    task: str,
    value: float,
    arms: tuple[float, float, float],
    metric: str = "macro-F1",
    label: str = "",
) -> Finding:
    """A utility finding with floor, released score and ceiling."""
    floor, score, ceiling = arms
    ratio = ceiling / score if metric == "bits per word" else score / ceiling
    scores = GapScores(
        metric, score=score, floor=floor, ceiling=ceiling, of_ceiling=ratio,
        of_ceiling_low=ratio - 0.013, of_ceiling_high=ratio + 0.011,
    )  # fmt: skip
    labels = (label, MODEL) if label else (MODEL,)
    return Finding(
        f"utility.{task}", value, 1482, "higher", value - 0.04, value + 0.03,
        labels=labels, scores=scores, unit="notes",
        method="bootstrap over patients, 95 %",
    )  # fmt: skip


def adversaries() -> list[Finding]:
    """The adversary table of an obfuscated release."""
    held = list(NAMES)
    none = "does not apply, because the release keeps no column"
    table = [
        share(
            target,
            adversary,
            hits,
            n,
            0.0035,
            gated=adversary in GATED and target in JUDGED,
            unit=unit,
        )
        for target, n, unit, row in (
            ("names", 835, "tokens", (3, 9, 21, 160, 331)),
            ("planted names", 512, "tokens", (0, 2, 14, 102, 188)),
            ("words", 24000, "tokens", (2210, 3110, 4020, 9150, 12480)),
            ("rare words", 2600, "tokens", (4, 11, 80, 340, 462)),
            ("note by ten words", 300, "notes", (41, 44, 47, 60, 102)),
            ("note by the patient's other notes", 300, "notes", (107, 111, 110, 120, 130)),
            ("note by its whole text", 300, "notes", (295, 297, 297, 299, 300)),
            ("note by public knowledge", 488, "notes", (7, 12, 13, 19, 30)),
        )
        for adversary, hits in zip(held, row, strict=True)
    ]
    return [
        *table,
        *(missing("attack.inference", none, Cell(a, "kept columns")) for a in held),
        missing("attack.copies", "does not apply, because every word is replaced",
            Cell("recipient", "copies")),
        share("own identifiers", "recipient", 0, 1702, 0.0, gated=True, unit="notes"),
    ]  # fmt: skip


def utilities() -> list[Finding]:
    """One utility finding per task; the sequence task has no share."""
    why = "real notes score no better than notes with permuted labels (P .31)"
    return [
        use("transfer", 0.897, (0.331, 0.927, 0.943), label="doc_type"),
        use("transfer", 0.932, (0.51, 0.94, 0.961), label="specialty"),
        missing("utility.sequence", why, None, "section"),
        use("language_model", 0.412, (10.62, 9.21, 7.2), "bits per word"),
        use("vectors", 0.81, (0.02, 0.349, 0.456), "Spearman"),
        use("within", 0.94, (0.33, 0.91, 0.943), label="doc_type"),
    ]


def findings() -> list[Finding]:
    """Findings of an obfuscated release, and some measures without an adversary."""
    drawn = "bootstrap over patients, 95 %"
    return [
        *adversaries(),
        *utilities(),
        Finding("attack.linkage", 0.021, 4966, "lower", 0.02, 0.022, 0.0205,
                attack="without the vectors", numbers={"candidates": 5}, unit="notes",
                chance_is="naming one of the candidates at random", method=drawn),
        Finding("attack.own_phone", None, 0, "lower", why="no phone is known",
            unit="own phones"),
        Finding("attack.own_name", 3 / 712, 712, "lower", 0.00087, 0.0123, 3.4 / 712,
                control=0.93, numbers={"expected": 3.4}, unit="patients", count=3, p=0.62,
                p_is="names permuted between patients", method="Clopper-Pearson 95 %",
                control_is="the same search in the source notes", control_kind="positive"),
        Finding("corpus.oddity", 0.25, 40, unit="notes"),
        Finding("attack.names", None, 0, "lower", why="needs a list of known patients"),
    ]  # fmt: skip


SIGNING_KEY = f"SHA256:{'fk7' * 14}A"
MODEL = "TF-IDF, logistic regression"
EXCERPTS = (
    (
        "individual assessed yesterday without papular eruption and resides near Brookdale with"
        " spouse , plan recheck at intervals of weeks and continue topical cream twice a day"
    ),
    (
        "the abdomen was draped and prepped sterile then an incision carried through fascia using"
        " cautery until the peritoneum could be identified and entered sharply without injury"
    ),
    (
        "denies dyspnea or palpitations , tolerating regular food , ambulating halls independently"
        " , afebrile overnight with stable pressures and adequate urine , discharge tomorrow"
        " expected"
    ),
)


HINT = "Raise channel.background, or pass the list of patients (--patients)."
MEANING = "All released notes were compared with the source notes."
ESTIMATED: tuple[tuple[str, str, str], ...] = (
    ("names", "names recovered", "names"),
    ("planted_names", "planted names recovered", "planted names"),
    ("words", "words recovered", "words"),
    ("ten_words", "notes found from ten words", "note by ten words"),
    ("other_notes", "notes linked by other notes", "note by the patient's other notes"),
    ("public_texts", "notes linked by public texts", "note by public knowledge"),
    ("membership", "training patients recognized", "membership"),
)
"""Risk, name of its gate, and target of its attacks."""
JUDGED = tuple(target for _, _, target in ESTIMATED)


def gate(risk: str, outcome: str, *, name: str = "", default: str = "") -> Gate:
    """A gate on a risk with a given outcome, on a share with the limit .05."""
    made = Gate(
        name or f"gate on {risk}", f"Is {risk} low?", risk,
        within=outcome != "not held",
        value=0.2 if outcome == "not held" else 0.01,
        limit=None if outcome == "not limited" else 0.05,
        meaning=MEANING, hint=HINT, unit="share of tokens", default=default,
        undecided=outcome == "not decided",
        inapplicable=outcome == "does not apply",
    )  # fmt: skip
    return replace(made, value=None) if outcome == "does not apply" else made


def check(name: str, *, within: bool = True) -> Gate:
    """A check of the program."""
    return Gate(
        name, f"Question of {name}?", CHECKS, within=within, value=0 if within else 1, limit=0,
        meaning=MEANING, hint="This is a program error.", unit="words",
    )  # fmt: skip


def estimated(risk: str, name: str, found: Finding, rule: Limit) -> Gate:
    """A gate on an attack, with its limit above chance."""
    chance = found.chance or 0.0
    above = rule.most if rule.risk != "membership" or rule.most is None else rule.most / 2
    limit = None if above is None else chance + above
    return Gate(
        name, f"Is there too much of {name}?", risk,
        within=limit is None or (found.value or 0.0) <= limit,
        value=found.value, limit=limit, meaning=MEANING, hint=HINT,
        unit="AUC" if risk == "membership" else f"share of {found.unit}",
        strict=rule.audience == "public", default=_default(rule), finding=found,
    )  # fmt: skip


def _default(rule: Limit) -> str:
    if not rule.changed:
        return ""
    return "none" if rule.default is None else f"{rule.default:g}"


def _absent(risk: str, name: str, why: str, rule: Limit) -> Gate:
    return Gate(
        name, f"Is there too much of {name}?", risk, within=True, value=None, limit=rule.most,
        meaning=why, hint=HINT, inapplicable=True,
    )  # fmt: skip


def gates(
    audience: Audience = "agreement",
    *,
    found: Sequence[Finding] | None = None,
    kind: str = "obfuscated",
    failed: bool = False,
    limits: Limits | None = None,
) -> tuple[Gate, ...]:
    """Gates of a release for an audience; with `failed`, patients' own names are left."""
    rules = (limits or Limits.read()).rules(audience)
    found = findings() if found is None else found
    made = [check("no word replaced by itself"), check("every note accounted for")]
    for risk, name, target in ESTIMATED:
        tried = [f for f in found if target_of(f) == target and f.value is not None and f.gated]
        if tried:
            made.append(estimated(risk, name, max(tried, key=above_chance), rules[risk]))
        else:
            made.append(_absent(risk, name, "this kind of release has none", rules[risk]))
    own = next((f for f in found if f.measure == "attack.own_name"), None)
    p = 0.0004 if failed else 0.62
    made += [
        Gate(
            "own name no more often than others'", "Do own names occur?", "own_identifiers",
            within=not failed, value=p, limit=0.05, meaning=MEANING, hint=HINT,
            unit="P value (owners permuted)", finding=own,
        ),
        Gate(
            "no residues after treatment", "Is any shape left?", "residues",
            within=True, value=4, limit=9, meaning=MEANING, hint=HINT, unit="notes",
        ),
        Gate(
            "kept columns single out few notes", "Are values unique?", "kept_columns",
            within=True, value=0.0012, limit=0.01, meaning=MEANING, hint=HINT,
            unit="share of notes",
        ),
    ]  # fmt: skip
    if kind == "deidentified":
        missed = gate("identifiers_missed", "not decided", name="identifiers that detection missed")
        why = "not known without a reviewer: 200 marks, about an hour"
        strict = audience == "public"
        made.append(replace(missed, value=None, meaning=why, strict=strict))
    else:
        why = "a missed identifier is replaced like every word"
        risk = "identifiers_missed"
        made.append(_absent(risk, "identifiers that detection missed", why, rules[risk]))
    if kind == "synthetic":
        made.append(
            Gate(
                "no long copies", "Are passages copied?", "copies", within=True, value=2, limit=3,
                meaning=MEANING, hint=HINT, unit="patients",
            )
        )  # fmt: skip
    task = next((f for f in found if f.measure == "utility.transfer" and f.value is not None), None)
    if task is not None:
        meaning = "Best of 2; better than random words: classifier, sentence labels."
        made.append(
            Gate(
                "of use for training", "Is it better than random words?", "use", within=True,
                value=task.value, limit=0, meaning=meaning, hint=HINT, unit="share of the gap",
                finding=task,
            )
        )  # fmt: skip
    return tuple(made)


def verdicts(
    audience: Audience = "agreement",
    *,
    found: Sequence[Finding] | None = None,
    kind: str = "obfuscated",
    failed: bool = False,
    limits: Limits | None = None,
) -> tuple[Verdict, ...]:
    """The verdict for an audience, then that for the other one."""
    both = sorted(AUDIENCES, key=lambda one: one != audience)
    return tuple(
        Verdict(one, gates(one, found=found, kind=kind, failed=failed, limits=limits))
        for one in both
    )


def with_findings(held: ReleaseRecord, *found: Finding) -> ReleaseRecord:
    """The record with other findings, and its gates on them."""
    audience = held.verdict.audience
    return replace(held, findings=found, verdicts=verdicts(audience, found=found, kind=held.kind))


ACCOUNTING = (
    TokenRow("words", 2154311, replaced=2154290, dropped=21, unknown=1204),
    TokenRow("numbers", 181022, dropped=181022),
    TokenRow("punctuation", 402817, dropped=402817),
    TokenRow("other", 12, dropped=12),
)
PHI = (
    PhiCount("NAME", "names of patients, relatives, clinicians (A)", 8412, "surrogate"),
    PhiCount("DATE", "dates, all elements but the year (C)", 6120, "shifted"),
    PhiCount("EMAIL", "e-mail addresses (F)", 4, "surrogate"),
    PhiCount("VEHICLE", "vehicle identifiers and plates (L)", 0, "no detector"),
)


def of_kind(kind: str, audience: Audience = "agreement") -> ReleaseRecord:
    """A record of one kind; only kinds that replace every word have a token accounting."""
    if kind == "obfuscated":
        return record(audience=audience)
    found = [f for f in findings() if target_of(f) not in ("words", "rare words")]
    if kind == "synthetic":
        found.append(area(0.52, 0.49, 0.544))
    found.append(share("copies", "recipient", 40, 20000, 0.0, gated=True))
    phi = PHI if kind == "deidentified" else None
    return replace(
        record(), kind=kind, accounting=(), phi=phi, findings=tuple(found),
        verdicts=verdicts(audience, found=found, kind=kind),
    )  # fmt: skip


def area(value: float, low: float, high: float, n: int = 900) -> Finding:
    """A finding on membership, an area under the curve."""
    return Finding(
        "attack.membership", value, n, "lower", low, high, 0.5,
        cell=Cell("recipient", "membership"), attack="calibrated", unit="patients", gated=True,
    )  # fmt: skip


def record(
    *,
    failed: bool = False,
    test_seed: bool = False,
    audience: Audience = "agreement",
    limits: Limits | None = None,
) -> ReleaseRecord:
    """A record of an invented release."""
    return ReleaseRecord(
        title="Consultation notes 2026",
        run="5f3c09d2a7b1",
        created="2026-11-20T22:14:03Z",
        version="0.1.0",
        signing_key=SIGNING_KEY,
        corpus=CorpusFacts(
            read=4999, notes=4966, patients=1702, tokens=2154311, types=24113,
            skipped={"null text": 30, "error": 3},
            columns=(Column("doc_id", "note id, replaced by a random one"), Column("transcription",
                "text, replaced"),
                     Column("doc_type", "kept (label)"), Column("description", "dropped")),
            more=(Fact("Words of fewer than 5 patients", 13907, "words"),),
        ),
        accounting=ACCOUNTING,
        verdicts=verdicts(audience, failed=failed, limits=limits),
        findings=tuple(findings()),
        phi=PHI,
        settings=(Fact("n", "3-14"), Fact("layout", "sentences"), Fact("patients", "(given)"),
                  Fact("min_patients", 5)),
        provenance=(Fact("Released notes, SHA-256", "9a" * 32), Fact("Key commitment", "c4" * 32),
                    Fact("Determinism", "statistical"),
                    Fact("Python", "3.11.9")),
        warnings=("The source has no column of years; trends over time were not looked at.",),
        skipped=("Attackers who read context with a language model.",
            "Linking the notes of one patient by style."),
        test_seed=test_seed,
        excerpts=EXCERPTS,
    )  # fmt: skip
