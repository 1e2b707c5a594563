"""An invented release for the report's tests: every number and word here is made up."""

from __future__ import annotations

from clinveil.core.finding import Finding
from clinveil.report.record import (
    AlignedNote,
    AlignedToken,
    Column,
    CorpusFacts,
    Fact,
    Gate,
    PhiCount,
    ReleaseRecord,
    StageRow,
    TokenRow,
)

CANARIES = ("Zanzibarovich", "quibblewort", "Maplethorpe")
_SOURCE = (
    "Patient Zanzibarovich seen today with quibblewort rash , 3 days ; lives in Maplethorpe . Plan : review in 2 weeks"
)
_OUT = (
    "Individual Hastings assessed yesterday without papular eruption - # hours - resides near Brookdale - Plan - "
    "recheck at # months"
)


def _token(source: str, released: str) -> AlignedToken:
    if released == "-":
        return AlignedToken(source, "", "dropped")
    mark = "phi" if source in CANARIES[::2] else "masked" if released == "#" else "replaced"
    mark = "kept" if source == released else "unknown" if source == CANARIES[1] else mark
    return AlignedToken(source, released, mark)  # type: ignore[arg-type]


def note(title: str = "Note 1 of 2, sampled from the notes with the rarest words", demo: bool = False) -> AlignedNote:
    """A note with a word of every mark; its source words include the canaries unless it is the demo note."""
    pairs = [_token(s, r) for s, r in zip(_SOURCE.split(), _OUT.split(), strict=True)]
    if demo:
        pairs = [AlignedToken("demo" if t.source in CANARIES else t.source, t.released, t.mark) for t in pairs]
    return AlignedNote(title, (*pairs, AlignedToken("\n", "", "dropped"), *pairs * 4), demo=demo)


def repeats() -> list[Finding]:
    """Recovery from draws in the notes of 1 to 8 patients, all and rare words, under memo patient."""
    recovered = {"all": (0.183, 0.402, 0.561, 0.752, 0.871), "below 20": (0.119, 0.377, 0.603, 0.811, 0.934)}
    return [
        Finding(
            "attack.inversion_repeated", value, 20000, "lower", value - 0.006, value + 0.006, 0.041, 0.04,
            "joint posterior over m draws",
            {"repeats": m, "draws": m, "draws_stand_in": "patients", "memo": "patient", "stratum": stratum},
            unit="tokens", method="Wilson 95 %, 20000 simulated words", control_is="outputs shuffled",
            control_kind="negative",
        )
        for stratum, values in recovered.items()
        for m, value in zip((1, 2, 3, 5, 8), values, strict=True)
    ]  # fmt: skip


def findings() -> list[Finding]:
    """One of everything that the first releases measure, and one that nobody has heard of."""
    bayes = "Bayes vulnerability: Smith 2009"
    column = {"label": "doc_type", "model": "lr"}
    said = {"unit": "test notes", "method": "bootstrap over patients, 95 %"}
    drawn = "bootstrap over patients, 95 %"
    return [
        Finding("attack.inversion", 0.183, 2154311, "lower", chance=0.041, control=0.041, source=bayes,
                detail={"stratum": "all", "types": 24113}, unit="tokens", control_is="outputs shuffled",
                control_kind="negative"),
        Finding("attack.inversion_rare", 0.119, 50211, "lower", chance=0.0004, control=0.0005, source=bayes,
                detail={"stratum": "below 20", "types": 17800}, unit="tokens", control_is="outputs shuffled",
                control_kind="negative"),
        Finding("attack.inversion_single", 0.00004, 2154311, "lower", chance=0.0, unit="tokens"),
        Finding("attack.inversion_candidates", 11.62, 2154311, "higher", chance=812.4, unit="tokens"),
        *repeats(),
        Finding("attack.longest_run", 2.1, 4966, "lower", 2.0, 2.2, 2.05,
                detail={"against": "own source", "most": 5, "chance_most": 6, "median": 2.0}, unit="words",
                chance_is="another patient's source", method=drawn),
        Finding("attack.six_grams", 0.0, 1980112, "lower", 0.0, 0.000002, 0.0000005,
                control=1.0, detail={"against": "own source"}, unit="6-grams", method=drawn,
                control_is="the source notes against themselves", control_kind="positive"),
        Finding("attack.six_grams_any", 0.00021, 1980112, "lower", 0.00019, 0.00023, 0.0002,
                detail={"against": "any source"}, unit="6-grams", method=drawn),
        Finding("attack.own_record_number", 0.0, 1702, "lower", 0.0, 0.00217, 0.0,
                unit="own record numbers", count=0, method="Clopper-Pearson 95 %"),
        Finding("attack.own_phone", None, 0, "lower", detail={"why": "no phone is known"}, unit="own phones"),
        Finding("attack.own_name", 3 / 712, 712, "lower", 0.00087, 0.0123, 3.4 / 712,
                control=0.93, detail={"expected": 3.4}, unit="patients", count=3, p=0.62,
                p_is="names permuted between patients", method="Clopper-Pearson 95 %",
                control_is="the same search in the source notes", control_kind="positive"),
        Finding("attack.other_names", 0.2435, 4966, "lower", 0.231, 0.256, 0.2393,
                control=0.31, unit="notes", count=1209, p=0.18, method=drawn,
                control_is="the same search in the source notes"),
        Finding("attack.layout_unique", 0.031, 4966, "lower", unit="notes", detail={"why": "no guess is made"}),
        Finding("utility.classification", 0.742, 1489, "higher", 0.719, 0.766, 0.024, 0.03,
                detail={**column, "side": "original"}, control_is="labels shuffled", control_kind="negative", **said),
        Finding("utility.classification", 0.655, 1489, "higher", 0.629, 0.681, 0.024, 0.03,
                detail={**column, "side": "released"}, control_is="labels shuffled", control_kind="negative", **said),
        Finding("utility.classification_loss", 0.087, 1489, "lower", 0.066, 0.109, detail=column, **said),
        Finding("corpus.oddity", 0.25, 40, unit="notes"),
        Finding("attack.names", None, 0, "lower", detail={"why": "needs a list of known patients"}),
    ]  # fmt: skip


def gates(*, failed: bool = False) -> tuple[Gate, ...]:
    """Seven gates; with `failed` the name gate does not pass."""
    rows = (
        ("Self-replaced tokens", "Did a word come out as itself?", True, 0, 0, "tokens"),
        ("Unknown words passed", "Did a word that the channel does not know come out?", True, 0, 0, "tokens"),
        ("Own numbers", "Does a patient's own number stand in his notes?", True, 0, 0, "numbers"),
        ("Own full name", "Does it stand there more often than strangers' names?", not failed, 3, "3 to 9", "patients"),
        ("Rare-word floor", "Did a word of fewer than five patients come out?", True, 0, 0, "words"),
        ("Secret key", "Was the key secret?", True, True, True, ""),
        (
            "All notes accounted for",
            "Does every note lead back to one source note?",
            True,
            4966,
            4966,
            "notes",
        ),
    )
    remedy = "Check the name detectors and the known-patient feed, then release again."
    said = "All released notes were read again and held against the notes that went in."
    return tuple(Gate(n, q, ok, v, t, said, remedy, unit) for n, q, ok, v, t, unit in rows)


def record(*, failed: bool = False, test_seed: bool = False) -> ReleaseRecord:
    """An internal record of an invented release."""
    return ReleaseRecord(
        title="Consultation notes 2026",
        edition="internal",
        run="5f3c09d2a7b1",
        created="2026-11-20T22:14:03Z",
        version="0.1.0",
        corpus=CorpusFacts(
            read=4999, notes=4966, patients=1702, tokens=2154311, types=24113, skipped={"null text": 30, "error": 3},
            columns=(Column("doc_id", "note id, replaced by a random one"), Column("transcription", "text, replaced"),
                     Column("doc_type", "kept (label)"), Column("description", "dropped")),
            more=(Fact("Words of fewer than 5 patients", 13907, "words"),
                  Fact("Source file", "/srv/ehr/n.csv", internal=True)),
        ),
        accounting=(
            TokenRow("words", 2154311, replaced=2154290, dropped=21, unknown=1204),
            TokenRow("numbers", 181022, dropped=181022),
            TokenRow("punctuation", 402817, dropped=402817),
            TokenRow("other", 12, dropped=12),
        ),
        gates=gates(failed=failed),
        findings=tuple(findings()),
        phi=(
            PhiCount("NAME", "names of patients, relatives, clinicians (A)", 8412, "surrogate"),
            PhiCount("DATE", "dates, all elements but the year (C)", 6120, "shifted"),
            PhiCount("EMAIL", "e-mail addresses (F)", 4, "surrogate"),
            PhiCount("VEHICLE", "vehicle identifiers and plates (L)", 0, "no detector"),
        ),
        notes=(note(), note("Note 2 of 2, sampled from all notes")),
        stages=(
            StageRow("Identifiers", "found and replaced by surrogates", "keyed", 61.2),
            StageRow("Vectors", "CBOW, 100 dimensions, 5 epochs", "statistical", 33.0),
            StageRow("Neighbours", "14 nearest among eligible words", "bitwise", 4.1),
            StageRow("Channel", "N drawn from 3 to 14", "bitwise", 0.4),
            StageRow("Replacing", "every token, one secret draw per patient and word", "keyed", 1.9),
            StageRow("Checks", "gates, attacks, utility", "bitwise", 44.7),
            StageRow("Release", "notes, card, manifest, external report", "", 0.6, "release"),
        ),
        settings=(Fact("n", "3-14"), Fact("memo", "patient"), Fact("patients", "/srv/ehr/patients.parquet"),
                  Fact("min_patients", 5)),
        provenance=(Fact("Released notes, SHA-256", "9a" * 32), Fact("Key commitment", "c4" * 32),
                    Fact("Determinism", "statistical"), Fact("Source, SHA-256", "77" * 32, internal=True),
                    Fact("Host", "ward7-db", internal=True),
                    Fact("Python", "3.11.9")),
        warnings=("The source has no column of years; trends over time were not looked at.",),
        not_tried=("Attackers who read context with a language model.", "Linking the notes of one patient by style."),
        test_seed=test_seed,
    )  # fmt: skip
