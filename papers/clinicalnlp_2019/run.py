"""Repeat paper C on your notes: train language models, sample notes, measure privacy and utility.

    python -m papers.clinicalnlp_2019.run NOTES -o OUT --pairs FILE --nli FILE

Run the same command again to resume. All of OUT is secret.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]  # of scikit-learn

from clinveil.attacks import load_data
from clinveil.core import fingerprint, need_torch, owner_only, private_folder, private_text
from clinveil.scale import Store
from papers.clinicalnlp_2019.privacy import (
    Audits,
    Privacy,
    compare_audits,
    plan_audits,
    train_all,
)
from papers.clinicalnlp_2019.settings import REAL, UNIGRAM, SyntheticSettings, label_of
from papers.clinicalnlp_2019.steps import (
    ComparedNotes,
    InputFile,
    Inputs,
    NoteParts,
    decoded,
    inference,
    leaks,
    letter_case,
    perplexity,
    split,
    train_vectors,
    unigram_notes,
    unigram_score,
    word_pairs,
)
from papers.clinicalnlp_2019.tables import StudyResults, tables
from papers.running import Cache, StoredFindings, command_line, exit_code_of, settings_of
from papers.tables import Results, Table, from_dicts, read_paper, write_results

HERE = Path(__file__).parent
MODELS = "models"


@dataclass(frozen=True)
class PairFiles:
    """Word pairs with human scores, and sentence pairs for inference, if given."""

    words: tuple[InputFile, ...] = ()
    sentences: InputFile | None = None

    @classmethod
    def of_paths(cls, words: Sequence[Path], sentences: Path | None) -> PairFiles:
        """Return the files with hashes of their contents."""
        lists = tuple(InputFile(path, fingerprint(path)) for path in words)
        return cls(lists, InputFile(sentences, fingerprint(sentences)) if sentences else None)


def compared_notes(
    store: Store, audits: Audits, parts: NoteParts, settings: SyntheticSettings, cache: Cache
) -> list[ComparedNotes]:
    """Return the compared corpora: the real notes, and the notes of each model."""
    corpora = [ComparedNotes(REAL, parts.train)]
    for (mode, dropout), audit in audits.lstms.items():
        if mode == settings.main:
            folder = store.folder(audit.full)
            ids = np.load(folder / "text-ids.npy", allow_pickle=False)
            notes = decoded(ids, load_data(audit.data).vocabulary)
            corpora.append(ComparedNotes(label_of(dropout), notes, folder / "model"))
    sampled = cache.run(unigram_notes, parts, settings.seed)
    return [*corpora, ComparedNotes(UNIGRAM, sampled)]


def measure(
    corpora: Sequence[ComparedNotes],
    parts: NoteParts,
    pairs: PairFiles,
    settings: SyntheticSettings,
    cache: Cache,
) -> list[StoredFindings]:
    """Return utility, copies and membership of all corpora."""
    seed = settings.seed
    dim = settings.dim
    workers = Parallel(n_jobs=settings.workers)
    step = delayed(cache.run)
    stored: list[StoredFindings] = []
    stored += workers(step(letter_case, each, parts, settings.casing, seed) for each in corpora)
    stored += workers(step(leaks, each, parts, seed) for each in corpora)
    stored += workers(step(perplexity, each, parts) for each in corpora)
    stored.append(cache.run(unigram_score, parts, seed))
    if pairs.words or pairs.sentences:
        workers(step(train_vectors, each, dim, seed) for each in corpora)
    if pairs.words:
        at_least = settings.min_pair_count
        stored += workers(
            step(word_pairs, each, parts, pairs.words, at_least, dim, seed) for each in corpora
        )
    if pairs.sentences:
        stored += workers(
            step(inference, each, pairs.sentences, settings.inference, dim, seed)
            for each in corpora
        )
    return stored


@dataclass(frozen=True)
class PaperRun:
    """Results, tables, and privacy of one run."""

    results: StudyResults = field(repr=False)
    tables: Sequence[Table]
    privacy: Privacy


def repeat_paper(
    inputs: Inputs, pairs: PairFiles, settings: SyntheticSettings, out: Path
) -> PaperRun:
    """Run all steps that are not in the private folder `out`.

    Raises InputError for too few notes, UsageError if the models would take too long.
    """
    need_torch()
    cache = Cache(out)
    store = Store(private_folder(out / MODELS))
    parts = cache.run(split, inputs)
    audits = plan_audits(store, parts, settings)
    train_all(store, audits, settings)
    corpora = compared_notes(store, audits, parts, settings, cache)
    measured = measure(corpora, parts, pairs, settings, cache)
    privacy = compare_audits(store, audits, settings)
    findings = [*privacy.findings, *(f for stored in measured for f in from_dicts(stored))]
    of_last_model = next(each for each in reversed(corpora) if each.model is not None)
    texts = sorted(of_last_model.notes.texts, key=len)
    results = StudyResults(
        findings=Results(tuple(findings)),
        settings=settings,
        parts=parts,
        labels=tuple(each.label for each in corpora),
        rare_words=privacy.rare_words,
        sample=(of_last_model.label, texts[len(texts) // 2]),
    )
    return PaperRun(results, tables(results, read_paper(HERE / "paper.toml")), privacy)


def run(notes: Path, pairs: PairFiles, out: Path, settings: SyntheticSettings) -> PaperRun:
    """Repeat the paper, and write `tables.md`, `findings.json` and `units-*.csv` (one row per
    left-out patient) to `out`.
    """
    with owner_only():
        done = repeat_paper(Inputs.read(notes, settings), pairs, settings, out)
    for old in out.glob("units-*.csv"):
        old.unlink()  # from a run with other settings
    for name, text in done.privacy.files.items():
        private_text(out / name, text)
    parts = done.results.parts
    write_results(
        out,
        read_paper(HERE / "paper.toml"),
        {"notes_train": len(parts.train), "words_train": parts.train.words},
        done.tables,
        done.results.findings,
        settings.for_page(),
        name="papers clinicalnlp_2019",
        seed=settings.seed,
    )
    return done


def main() -> None:
    """Run the script with the arguments of the command line."""
    parser = command_line(str(__doc__).splitlines()[0], HERE / "settings.toml")
    parser.add_argument(
        "--pairs", type=Path, action="append", default=[], help="word pairs with human scores"
    )
    parser.add_argument("--nli", type=Path, help="sentence pairs: MedNLI, SICK or RQE")
    arguments = parser.parse_args()
    settings = settings_of(SyntheticSettings, arguments)
    pairs = PairFiles.of_paths(arguments.pairs, arguments.nli)
    run(arguments.notes, pairs, arguments.out, settings)


if __name__ == "__main__":
    sys.exit(exit_code_of(main))
