"""An invented release for the tests of the report: every number and word here is made up."""

from __future__ import annotations

from dataclasses import replace

from clinveil.attacks import GATED, target_of
from clinveil.core import Cell, Finding, GapScores
from clinveil.report import (
    AlignedNote,
    AlignedToken,
    Column,
    CorpusFacts,
    Fact,
    Gate,
    PhiCount,
    ReleaseRecord,
    TokenRow,
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


MODEL = "TF-IDF, logistic regression"
JUDGED = ("names", "planted names", "note by ten words", "note by public knowledge")
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


def gates(*, failed: bool = False, off: bool = False) -> tuple[Gate, ...]:
    """Eight gates, one of them without power; with `failed` one fails, with `off` one is switched
    off.
    """
    rows = (
        ("Self-replaced tokens", "Did a word come out as itself?", True, 0, 0, "tokens"),
        ("Unknown words passed", "Did an unknown word come out?", True, 0, 0, "tokens"),
        ("Own numbers", "Do the notes contain a patient's own numbers?", True, 0, 0, "numbers"),
        (
            "Own full name",
            "More often than other patients' names?",
            not failed,
            3,
            "3 to 9",
            "patients",
        ),
        (
            "Rare-word floor",
            "Did a word of fewer than five patients come out?",
            True,
            0,
            0,
            "words",
        ),
        ("Secret key", "Was the key secret?", True, True, True, ""),
        (
            "All notes accounted for",
            "Does every note match one source note?",
            True,
            4966,
            4966,
            "notes",
        ),
        (
            "Names not recovered",
            "Did an adversary recover names?",
            True,
            0.0254,
            0.05,
            "share of tokens",
        ),
    )
    hint = "Check the name detectors and the known-patient feed, then release again."
    meaning = "All released notes were compared with the source notes."
    made = [Gate(n, q, ok, v, t, meaning, hint, unit) for n, q, ok, v, t, unit in rows]
    made[4] = replace(made[4], blind=True, power="Too few words to detect a breach.")
    made[7] = replace(made[7], switched_off=off)
    return tuple(made)


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


def of_kind(kind: str) -> ReleaseRecord:
    """A record of one kind; only kinds that replace every word have a token
    accounting.
    """
    if kind == "obfuscated":
        return replace(record(), kind=kind)
    found = [f for f in findings() if target_of(f) not in ("words", "rare words")]
    copies = share("copies", "recipient", 40, 20000, 0.0, gated=True)
    phi = PHI if kind == "deidentified" else None
    return replace(record(), kind=kind, accounting=(), phi=phi, findings=(*found, copies))


def record(*, failed: bool = False, off: bool = False, test_seed: bool = False) -> ReleaseRecord:
    """A record of an invented release."""
    return ReleaseRecord(
        title="Consultation notes 2026",
        run="5f3c09d2a7b1",
        created="2026-11-20T22:14:03Z",
        version="0.1.0",
        corpus=CorpusFacts(
            read=4999, notes=4966, patients=1702, tokens=2154311, types=24113,
            skipped={"null text": 30, "error": 3},
            columns=(Column("doc_id", "note id, replaced by a random one"), Column("transcription",
                "text, replaced"),
                     Column("doc_type", "kept (label)"), Column("description", "dropped")),
            more=(Fact("Words of fewer than 5 patients", 13907, "words"),),
        ),
        accounting=ACCOUNTING,
        gates=gates(failed=failed, off=off),
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
