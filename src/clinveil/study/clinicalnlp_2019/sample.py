"""A synthetic note beside an invented real one (the paper's Figure 1); for the folder of the study only."""

from __future__ import annotations

from clinveil.corpus.corpus import TEXT
from clinveil.corpus.medtext import medtext
from clinveil.study.clinicalnlp_2019.plan import Study
from clinveil.study.plain import Table

LINES, PATIENTS = 24, 4


def sample_table(study: Study) -> Table:
    """The first lines of a note of usual length by the last dropout's model, beside a note of the demo corpus."""
    corpus = next(c for c in reversed(study.corpora) if c.member is not None)
    texts = sorted(corpus.load(study.store).texts, key=len)
    ours, theirs = texts[len(texts) // 2].split("\n")[:LINES], _demo_note().split("\n")[:LINES]
    rows = [
        (str(i + 1), ours[i] if i < len(ours) else "", theirs[i] if i < len(theirs) else "")
        for i in range(max(len(ours), len(theirs)))
    ]
    asks = "Would a reader take it for a note?"
    heads = ("line", f"synthetic ({corpus.label})", "invented, of our demo corpus")
    return Table("figure-1", "Figure 1: a sampled note", asks, heads, tuple(rows))


def _demo_note() -> str:
    """A note of usual length of the demo corpus, in MedText's form."""
    from clinveil.corpus.demo.stream import demo_chunks

    texts = [text for chunk in demo_chunks(PATIENTS, 1, spans=False) for text in chunk.notes.column(TEXT).to_pylist()]
    return medtext(sorted(texts, key=len)[len(texts) // 2])
