"""The study's tables: the paper's 1 and 2 with its numbers, the privacy score with its floors, audits, 4.2 and 4.4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clinveil.core.finding import Finding
from clinveil.study.clinicalnlp_2019 import paper
from clinveil.study.clinicalnlp_2019.claims import claims_table, without_power
from clinveil.study.clinicalnlp_2019.corpora import REAL
from clinveil.study.clinicalnlp_2019.differences import differences
from clinveil.study.clinicalnlp_2019.plan import PLANTED, label_of
from clinveil.study.clinicalnlp_2019.results import SAME, Results
from clinveil.study.plain import NONE, Row, Table, interval, number


def tables(results: Results) -> list[Table]:
    """All tables, in the order of the page; none of them holds a word of a note."""
    return [
        table_1(results),
        table_2(results),
        paper_2("table-2-small", "Table 2 of the paper: MedText-2", paper.TABLE_2_SMALL),
        paper_2("table-2-large", "Table 2 of the paper: MedText-103", paper.TABLE_2_LARGE),
        claims_table(results),
        privacy(results),
        audits(results),
        canaries(results),
        observations(results),
        analysis(results),
        differences(results.settings),
    ]


def shown(finding: Finding | None, digits: int = 3) -> str:
    """A number with its interval, or a dash."""
    return NONE if finding is None else interval(finding.value, finding.low, finding.high, digits)


def _value(finding: Finding | None) -> float | None:
    return None if finding is None else finding.value


def _chance(finding: Finding | None) -> float | None:
    return None if finding is None else finding.chance


def _control(finding: Finding | None, digits: int = 3) -> str:
    return NONE if finding is None else number(finding.control, digits)


def table_1(results: Results) -> Table:
    """Notes, words, vocabulary and unknown words, beside the paper's corpora."""
    rows: list[Row] = []
    for name, counts in results.counts.items():
        cells = [_count(counts.get(f"{what}_{part}")) for what in ("notes", "words") for part in PARTS]
        rows.append((f"here: {name}", *cells, _count(counts["vocabulary"]), f"{100 * counts['unknown']:.1f} %"))
    rows += [(f"paper: {name}", *cells) for name, cells in paper.TABLE_1.items()]
    heads = ("corpus", *(f"{what}, {part}" for what in ("notes", "words") for part in PARTS), "vocabulary", "unknown")
    asks = "How large are the parts, and how many words are too rare to keep?"
    return Table("table-1", "Table 1: the notes", asks, heads, tuple(rows), ("General text has the same rules.",))


PARTS = ("train", "valid", "test")


def _count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def table_2(results: Results) -> Table:
    """The paper's columns, ours."""
    rows = [*((label, *_two(results, label)) for label in results.labels), ("by chance", *_two_by_chance(results))]
    pairs = {str(f.detail["list"]): f.n for f in results.findings if f.measure == "utility.similarity"}
    lists = sorted(pairs)
    asked = ", ".join(f"{name} {pairs[name]}" for name in lists) or "none given"
    models = ("training notes", "perplexity, valid", "perplexity, test")
    heads = (*models, "perplexity, test, by n-grams of the notes", "privacy (placebo, reseed floor)")
    remarks = (
        "Privacy is S-PDTP in nats, lower is better; it means nothing without the two floors behind it, and it is no "
        "epsilon. The unigram's is exact, over all patients; its placebo is another patient left out.",
        "The n-grams are what somebody can build who got the notes alone, no model.",
        "By chance: no correlation; always the most frequent label; everything in lower case.",
        *_power(results),
        f"Word pairs by protocol clinicalnlp, Spearman, of words that the real training notes hold at least "
        f"{results.settings.min_pair_count} times (pairs: {asked}); inference with the paper's model on the sentence "
        "pairs given, accuracy; letter case as F1.",
    )
    return Table(
        "table-2",
        "Table 2: privacy and utility here",
        "What do synthetic notes keep, and what do they give away?",
        (*heads, *lists, "inference", "letter case"),
        tuple(rows),
        remarks,
    )


def _two(results: Results, label: str) -> Iterator[str]:
    for part in ("valid", "test"):
        yield shown(results.of("utility.perplexity", label, of=part, by="the model"), 1)
    yield shown(results.of("utility.perplexity", label, of="test", by="n-grams of the notes"), 1)
    yield _privacy_cell(results, label)
    lists = sorted({str(f.detail["list"]) for f in results.findings if f.measure == "utility.similarity"})
    for name in lists:
        yield shown(results.of("utility.similarity", label, list=name))
    yield shown(results.of("utility.nli", label, series="vectors"))
    yield shown(results.of("utility.casing", label, series="model"))


def _two_by_chance(results: Results) -> Iterator[str]:
    """What guessing scores in each column of Table 2, as the findings of the real notes have it."""
    yield from (NONE,) * 4
    for name in sorted({str(f.detail["list"]) for f in results.findings if f.measure == "utility.similarity"}):
        yield number(_chance(results.of("utility.similarity", REAL, list=name)))
    yield number(_chance(results.of("utility.nli", REAL, series="vectors")))
    yield number(_chance(results.of("utility.casing", REAL, series="model")))


def _power(results: Results) -> Iterator[str]:
    """Whether inference can tell corpora apart at all: real notes must beat the most frequent label."""
    real = results.of("utility.nli", REAL, series="vectors")
    if real is None:
        return
    says = f"real notes score {shown(real)}, always the most frequent label {number(real.chance)}"
    if without_power(real):
        yield f"Inference has no power here: {says}. The column tells nothing of the notes."
    else:
        yield f"Inference can tell something: {says}."


def _privacy_cell(results: Results, label: str) -> str:
    if label == "unigram":
        found = results.of("attack.pdtp", label)
        return NONE if found is None else f"{shown(found, 2)} ({_control(found, 2)}, none)"
    own = {"mode": results.settings.main, "from": "the model"}
    found, floor = (results.of(f"attack.{name}", label, **own) for name in ("pdtp", "pdtp_reseed_floor"))
    return NONE if found is None else f"{shown(found, 2)} ({_control(found, 2)}, {number(_value(floor), 2)})"


def paper_2(ident: str, title: str, rows: Mapping[str, tuple[str, ...]]) -> Table:
    """The paper's own rows."""
    heads = ("training notes", "perplexity", "privacy", "similarity", "relatedness", "nli", "case")
    cells = tuple((label, *(cell or NONE for cell in cells)) for label, cells in rows.items())
    return Table(ident, title, "What did the paper find on MIMIC-III discharge summaries?", heads, cells)


def privacy(results: Results) -> Table:
    """Score, floors, effect, gap and sign for each dropout: by the model, by its notes alone, and by paper C's code."""
    rows = [row for dropout in results.settings.dropout for row in _privacy_rows(results, label_of(dropout))]
    rows += _unigram_rows(results)
    heads = ("model", "seen through", "score", "placebo", "reseed floor", "effect", "elsewhere", "P")
    remarks = (
        "Placebo: the same largest difference when another patient was left out. Reseed floor: between models of all "
        "notes that differ in their seed alone. Score less placebo is not what the patient adds: the two are at other "
        "words, and maxima do not add.",
        "Effect: how much likelier the models that had the patient find one word of theirs than those that lost them, "
        "the word chosen under one training seed and measured under another, mean over patients. Elsewhere: the same "
        "for a model that lost somebody else; P that the effect is no more than that. Where one seed does not find the "
        "word again the effect is too low, the score always too high: the largest effect lies between the two.",
        "Gap: the mean of the difference over all words instead of one; P likewise.",
        "Intervals are Student's t over patients. Effects need a second training seed: compat has none, nor reseeds.",
        "compat: paper C's recipe, annealed on validation notes, in which leaving out a note moves all others. What "
        "differs from its code stands at the end of the page.",
        "The unigram's score and effect are exact; all patients, and the audited ones alone.",
    )
    asks = "How much of the privacy score is about the patient who was left out?"
    return Table("privacy", "The privacy score and its floors", asks, (*heads, *GAP), tuple(rows), remarks)


GAP = ("gap, nats a token", "P", "positive")


def _privacy_rows(results: Results, label: str) -> Iterator[Row]:
    for mode, by in (("exact", "the model"), ("exact", "released notes"), ("compat", "the model")):
        own = {"mode": mode, "from": by}
        score = results.of("attack.pdtp", label, **own)
        if score is None:
            continue
        effect, gap = (results.of(f"attack.pdtp_{name}", label, **own) for name in ("effect", "gap"))
        floor, sign = (results.of(f"attack.pdtp_{name}", label, **own) for name in ("reseed_floor", "sign"))
        yield (
            label,
            by if mode == "exact" else f"{by}, compat",
            shown(score, 2),
            _control(score, 2),
            number(_value(floor), 2),
            *_tested(effect, 2),
            shown(gap),
            _p(gap),
            NONE if sign is None else f"{sign.count} of {sign.n}",
        )


def _tested(effect: Finding | None, digits: int) -> tuple[str, str, str]:
    return shown(effect, digits), _control(effect, digits), _p(effect)


def _unigram_rows(results: Results) -> Iterator[Row]:
    for label, by in (("unigram", "the model, all patients"), (SAME, "the model")):
        score, effect, gap = (results.of(f"attack.{name}", label) for name in ("pdtp", "pdtp_effect", "pdtp_gap"))
        if score is not None:
            cells = (shown(score, 2), _control(score, 2), "none", *_tested(effect, 2))
            yield ("unigram", by, *cells, shown(gap), _p(gap), NONE)


def _plain(value: object) -> float | None:
    return value if isinstance(value, float) else None


def _p(finding: Finding | None) -> str:
    return NONE if finding is None or finding.p is None else f"{finding.p:.4f}"


def audits(results: Results) -> Table:
    """Copies and membership of every corpus; real notes are what an identity generator would release."""
    rows = [(label, *_audit(results, label)) for label in results.labels]
    copied = ("released", "words in copies of 20 (held out)", "patients' words copied, in − out", "P")
    heads = (*copied, "AUC, notes", "AUC, notes, calibrated", "AUC, model", "AUC, model, calibrated", "AUC, blind")
    remarks = (
        "The row of the real notes is a generator that copies its training notes: every attack must find it.",
        "Copies of 20 words: the more notes are looked through, the more is found, and the held-out ones are fewer; "
        "the next column knows no sizes.",
        "AUC 0.5 is chance. Blind: an attacker with a bag of words and no model; where its interval lies above "
        "0.5, the two sides differ by themselves. Calibrated: against n-grams of the validation patients.",
    )
    asks = "Can it be told from what is released whose notes it was made from?"
    return Table("audits", "Copies and membership", asks, heads, tuple(rows), remarks)


def _audit(results: Results, label: str) -> Iterator[str]:
    text = results.of("attack.copies", label, span=20)
    yield f"{number(_value(text), 4)} ({number(_plain(text.detail.get('held_out') if text else None), 4)})"
    people = results.of("attack.copies_of_patients", label, span=20)
    yield shown(people, 4)
    yield _p(people)
    for by in ("released notes", "the model"):
        for attacker in ("loss threshold", "calibrated"):
            yield shown(results.of("attack.membership", label, attacker=attacker, **{"from": by}), 2)
    yield shown(results.of("attack.membership_blind", label), 2)


def canaries(results: Results) -> Table:
    """Mean exposure by family and repeats, and how many were written out."""
    rows: list[Row] = []
    found = [f for f in results.findings if f.measure == "attack.canary_exposure"]
    keys = dict.fromkeys(
        (str(f.detail["corpus"]), str(f.detail["family"]), int(f.detail["repeats"] or 0)) for f in found
    )
    for label, family, repeats in keys:
        own = {"family": family, "repeats": repeats}
        model, text = (
            results.of("attack.canary_exposure", label, **own, **{"from": by}) for by in ("the model", "released notes")
        )
        taken = results.of("attack.canary_extraction", label, **own)
        never = [f"{_control(f, 1)} ({number(_chance(f), 1)})" for f in (model, text)]
        exposed = (shown(model, 1), never[0], shown(text, 1), never[1])
        rows.append((label, family, str(repeats), NONE if model is None else str(model.n), *exposed, shown(taken, 2)))
    who = ("model", "family", "times planted", "canaries")
    never_planted = "never planted (chance)"
    heads = (*who, "exposure, model", never_planted, "exposure, notes alone", never_planted, "written out")
    remarks = (
        "Exposure in bits, mean and 95 % interval over the canaries; 10.0 is the most that 1,000 fresh draws can show. "
        "Never planted: the control, canaries of their kind that stood in no note, beside what chance gives.",
        "A cell of few canaries tells little; where all of a cell have one exposure, no interval can be had.",
    )
    asks = "How often must a secret stand in the notes before the model, or its notes alone, give it away?"
    return Table("canaries", "Canaries", asks, heads, tuple(rows), remarks)


OBSERVED = (
    ("study.pronoun_switch", "notes with he and she", 3),
    ("study.pronoun_switches", "switches per 1,000 pronouns", 0),
    ("study.repeated_entries", "list entries repeated", 3),
    ("study.section_order", "headings in usual order", 3),
    ("study.note_length", "tokens a note", 0),
    ("study.type_token_ratio", "type-token ratio", 3),
    ("study.unigram_divergence", "unigram divergence, bits", 3),
)


def observations(results: Results) -> Table:
    """Section 4.2: what the paper's clinician saw, counted."""
    rows = [(label, *(shown(results.of(m, label), d) for m, _, d in OBSERVED)) for label in results.labels]
    first = results.labels[0]
    chance = [results.of(m, first) for m, _, _ in OBSERVED]
    rows.append(("by chance", *(number(_chance(f), d) for f, (_, _, d) in zip(chance, OBSERVED, strict=True))))
    remarks = (
        "The row of the real notes is of the held-out test patients. The paper says: sections are mostly in the right "
        "order, he turns to she, lists repeat their entries.",
    )
    asks = "Do synthetic notes look like real ones where the paper's clinician looked?"
    heads = ("notes", *(name for _, name, _ in OBSERVED))
    return Table("observations", "Section 4.2: the clinician's remarks, counted", asks, heads, tuple(rows), remarks)


def analysis(results: Results) -> Table:
    """Section 4.4: where the largest differences are, and what a planted name does."""
    rows = [(label, *_rarity(results, label)) for label in results.rarity]
    first = f"{label_of(results.settings.dropout[0])}, {PLANTED}"
    rise, on_name = (results.of(f"attack.pdtp_{name}", first) for name in ("planted", "on_name"))
    remarks = [
        f"The paper found the higher probability in the model of all notes in {paper.SIGNS['MedText-2']} notes "
        f"(MedText-2) and {paper.SIGNS['MedText-103']} (MedText-103). Under mere noise it would be half of them."
    ]
    if rise is not None:
        remarks.append(
            f"Planted names: the score of patients with a planted full name is {shown(rise, 2)} nats "
            f"higher than of those without (P {_p(rise)}, {rise.detail['planted']} of {rise.n}); the largest "
            f"difference fell on the name in {shown(on_name, 2)} of them (chance {number(_chance(on_name), 4)})."
        )
    heads = ("model", "positive", "word only here", "word before only here", "pair only here", "occurrences", "place")
    asks = "On which words do the largest differences fall?"
    tail = ("Only here: in no other audited patient's or other patient's notes. Occurrences and place are medians.",)
    return Table("analysis", "Section 4.4: the analysis", asks, heads, tuple(rows), (*remarks, *tail))


def _rarity(results: Results, label: str) -> Row:
    said = results.rarity[label]
    counts = (
        f"{said[name]} of {said['units']}" for name in ("positive", "only_here", "before_only_here", "pair_only_here")
    )
    return (*counts, f"{said['occurrences']:.0f}", f"{said['place']:.2f}")
