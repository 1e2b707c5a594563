"""What differs from the paper and its released code, said on the page itself: a row a part, as the study was set."""

from __future__ import annotations

from clinveil.study.clinicalnlp_2019.settings import StudySettings
from clinveil.study.plain import Row, Table


def differences(settings: StudySettings) -> Table:
    """All that is known to differ; what is not in the list follows the released code."""
    rows = (*_notes(settings), *_models(settings), *_privacy(settings), *_utility(settings))
    remarks = (
        "compat is the recipe of paper C's code but for what stands here; exact is ours, in which nothing but the "
        "left-out patient changes.",
        "Where the paper and its code disagree, the table says which one is followed.",
    )
    asks = "Whose numbers may be held against the paper's, and whose not?"
    heads = ("part", "the paper and its code", "here")
    return Table("differences", "What differs from the paper's code", asks, heads, rows, remarks)


def _notes(settings: StudySettings) -> tuple[Row, ...]:
    by = "by patient: nobody stands on both sides" if settings.split == "patient" else "by note"
    return (
        ("notes", "59,652 discharge summaries of MIMIC-III", "the notes given"),
        ("split", "by note; 129 test notes, one too many by a slip of the code", by),
        ("tokens", "spaCy 2.0.7 and its sentence borders", "rules of our own; lines break where the code breaks them"),
        ("end of a note", "an empty line: the end-of-line token twice", "a token of its own, after that of the line"),
    )


def _models(settings: StudySettings) -> tuple[Row, ...]:
    compat, exact = (settings.leave_out(settings.dropout[0], mode).lm.recipe() for mode in ("compat", "exact"))
    theirs = "SGD at 20, divided by 4 after a pass whose validation perplexity is not 0.1 below the best, which is kept"
    passes = f"compat: so (passes: {compat.epochs})" if settings.compat else "compat: not run"
    ours = f"exact: a warm-up, then down to a tenth, whatever the validation notes say (passes: {exact.epochs})"
    kept = f"Table 2, notes and utility are of {settings.main}"
    return (
        ("network", "LSTM, 2 layers of 650, 20 passes", f"LSTM, {exact.layers} layers of {exact.width}"),
        ("tied vectors", "the paper: tied; the commands of the code: not", "tied"),
        ("learning rate", theirs, f"{passes}; {ours}; {kept}"),
        (
            "batches",
            "one stream of text in 20 columns",
            "compat: so; exact: each note in a lane, from a state of zeros",
        ),
        ("perplexity", "validation text as one stream in 10 columns", "each note by itself"),
        (
            "writing",
            "one stream whose state is never reset, as many words as the training notes have",
            "each note from a state of zeros, none longer than the longest training note, as many tokens",
        ),
    )


def _privacy(settings: StudySettings) -> tuple[Row, ...]:
    return (
        ("left out", "30 notes, one after another", f"{settings.units} patients with all their notes"),
        (
            "words scored",
            "from the second token on, from a state of zeros",
            "compat: from the second token on; exact: all; both after an end of note",
        ),
        ("floors", "none", "another patient left out (placebo), other seeds, the same training twice"),
    )


def _utility(settings: StudySettings) -> tuple[Row, ...]:
    scale = settings.scale
    layers, hidden = scale.casing.shape
    casing = f"{layers} of {hidden}, {scale.casing.epochs} passes, columns of {scale.casing.batch}"
    return (
        (
            "word vectors",
            "word2vec in C, 300 dimensions, 20 threads",
            f"gensim, {scale.dim} dimensions, one thread; else the same: case, numbers and punctuation kept, windows "
            "stop at line ends",
        ),
        (
            "word pairs",
            "UMNSRS; words that the real notes hold 20 times (30 for MedText-103), in lower case as listed",
            f"the lists given; {settings.min_pair_count} times",
        ),
        (
            "inference",
            "MedNLI; a token without a vector has a random one, shared",
            f"the pairs given; such a token takes the vector of its lower-case form; {scale.nli.seeds} seeds",
        ),
        (
            "letter case",
            "2 layers of 300, 30 passes, columns of 100; the test text searched as one",
            f"{casing}; all test notes, whole, in {scale.casing.streams} parts",
        ),
    )
