"""Utility measures for protected notes, and for vectors trained on them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.random import default_rng

from clinveil.api.frames import Notes, given, in_python
from clinveil.api.spans import Spans, given_spans
from clinveil.core.errors import InputError, UsageError
from clinveil.core.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clinveil.utility.pairs import PairList
    from clinveil.vectors.table import Vectors

__all__ = ["classification", "deidentification", "nli", "similarity"]


@in_python
def similarity(
    vectors: Vectors | str | Path,
    pairs: PairList | str | Path | Sequence[tuple[str, str, float]],
    *,
    seed: int = 1,
    protocol: Literal["jamia", "clinicalnlp"] = "jamia",
    **options: Any,
) -> list[Finding]:
    """Correlate cosines of word vectors with human scores of word pairs (paper A, Table 3; paper C, section 3.3).

    Args:
        pairs: a list of (term, term, score), or the path of a table with these columns (UMNSRS, MayoSRS, …).
        protocol: `jamia` (Pearson) or `clinicalnlp` (Spearman; needs `frequencies`).
        options: fields of `SimilarityTask`: `subwords`, `frequencies`, `min_count`, `missing`, `only`, `draws`.

    Raises InputError for pairs that cannot be scored.
    """
    from clinveil.utility.evaluations.similarity import SimilarityTask
    from clinveil.utility.evaluations.similarity import similarity as measure

    known = {field.name for field in fields(SimilarityTask)}
    if unknown := sorted(options.keys() - known):
        raise UsageError(f"unknown option {unknown[0]}", hint="use one of " + ", ".join(sorted(known)))
    task = SimilarityTask(protocol=protocol, **options)
    return measure(_vectors(vectors), _pairs(pairs), default_rng(seed), task)


@in_python
def classification(
    original: Notes,
    released: Notes,
    label: str,
    *,
    model: str | Sequence[str] = "lr",
    crosswalk: Mapping[str, str] | str | Path | None = None,
    seed: int = 1,
    columns: Mapping[str, Any] | None = None,
    **settings: Any,
) -> list[Finding]:
    """Train the same classifiers on original and on protected notes, with one split, and return scores and loss.

    Args:
        label: a column of the original. model: lr, svm, cnn, lstm, …; one or several.
        crosswalk: released note id -> source id, or the vault of the release; without it ids must be equal.
        columns: column roles of a frame.
        settings: fields of `ClassifierSettings`, for example `min_class`.

    Raises InputError for invalid notes, too few notes, or too few classes. Source: paper A.
    """
    from clinveil.core.load_settings import load_settings
    from clinveil.utility.classifiers import ClassifierSettings
    from clinveil.utility.evaluations.classification import compared, evaluate

    how = load_settings(ClassifierSettings, settings)
    source = given(original, **{**(columns or {}), "label": label}).corpus
    target = given(released, **(columns or {})).corpus
    if isinstance(crosswalk, str | Path):
        from clinveil.releases.crosswalk import source_notes

        crosswalk = source_notes(Path(crosswalk))
    rng = default_rng(seed)
    task = evaluate(source.batches(), target.batches(), label, rng, how, crosswalk=crosswalk)
    models = (model,) if isinstance(model, str) else tuple(model)
    return [finding for name in models for finding in compared(task, name, rng, how)]


@in_python
def deidentification(
    notes: Notes, gold: Spans, *, found: Spans = None, columns: Mapping[str, Any] | None = None, **settings: Any
) -> list[Finding]:
    """Compare detected spans, or the spans `found` by another tool, with gold spans.

    Args:
        gold, found: note id -> spans; a frame of note_id, start, end, label; spans for each text of a list; or a file
            or folder as the command takes them. A span is (start, end, label) in code points, or a `Span`.
        columns: column roles of a frame.
        settings: fields of `Deidentification`.

        Raises InputError for spans that do not match the notes.

    >>> import clinveil
    >>> notes = ["Seen by Dr. Sarah Miller.", "No pain."]
    >>> found = clinveil.evaluate.deidentification(notes, [[(12, 24, "NAME")], []])
    >>> found[0].measure, found[0].value
    ('phi.recall', 1.0)
    """
    from clinveil.core.load_settings import load_settings
    from clinveil.corpus.gold import Scheme
    from clinveil.utility.evaluations.deidentification import Deidentification, on_gold

    options = load_settings(Deidentification, {"workers": 1, **settings})
    scheme = Scheme(options.offsets)
    detected = None if found is None else given_spans(found, "found", scheme)
    return on_gold(options, given(notes, **(columns or {})).corpus, given_spans(gold, "gold", scheme), found=detected)


@in_python
def nli(
    vectors: Vectors | str | Path,
    train: str | Path,
    *,
    dev: str | Path | None = None,
    test: str | Path | None = None,
    seed: int = 1,
    **settings: Any,
) -> list[Finding]:
    """Train paper C's inference model on frozen vectors; compare with random vectors and the majority class.

    Args:
        train, dev, test: files of sentence pairs; missing ones are split off the training pairs, by premise.
        settings: fields of `NliSettings`.

    Raises MissingExtra without PyTorch, InputError for invalid pairs.
    """
    from clinveil.core.load_settings import load_settings
    from clinveil.utility.evaluations._sentence_pairs import nli_parts, read_sentence_pairs
    from clinveil.utility.evaluations.nli import NliSettings
    from clinveil.utility.evaluations.nli import nli as measure

    rng = default_rng(seed)
    first, *others = (read_sentence_pairs(Path(path)) if path else None for path in (train, dev, test))
    if first is None:
        raise UsageError("no training pairs", hint="pass train=FILE")
    parts = nli_parts(first, others[0], others[1], rng)
    return measure(_vectors(vectors), parts, rng, load_settings(NliSettings, settings))


def _vectors(vectors: Vectors | str | Path) -> Vectors:
    from clinveil.vectors.files import load_vectors

    return load_vectors(Path(vectors)) if isinstance(vectors, str | Path) else vectors


def _pairs(pairs: Any) -> PairList:
    import numpy as np

    from clinveil.utility.pairs import PairList, read_pairs

    if isinstance(pairs, str | Path):
        return read_pairs(Path(pairs))
    if isinstance(pairs, PairList):
        return pairs
    try:
        rows = [(str(left), str(right), float(score)) for left, right, score in pairs]
    except (TypeError, ValueError):
        hint = "pass (term, term, score) for each pair"
        raise InputError("a pair is not two terms and a number", where="the pairs", hint=hint) from None
    return PairList("pairs", tuple((a, b) for a, b, _ in rows), np.array([score for _, _, score in rows]))


def __dir__() -> list[str]:
    return __all__
