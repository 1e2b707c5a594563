"""All evaluations; each file is a class of settings with named inputs, and the measure that it
runs.

The commands of `clinveil evaluate` and the functions of `clinveil.evaluate` are made from
`EVALUATIONS`:

    kind = EVALUATIONS.get("similarity")
    kind.help(), kind.inputs, kind.shown
    done = kind(protocol="jamia")({"vectors": Path("v.vec"), "pairs": [Path("p.csv")]}, seed=1)
    done.findings, done.title

Each input is a path, or the data itself (`Corpus`, `Vectors`, `GoldSpans`, …).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import getdoc
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from clinveil.core import QUIET, Finding, Members, NotesSettings, Say, Settings, first_paragraph

if TYPE_CHECKING:
    from clinveil.corpus import Corpus
    from clinveil.vectors import Vectors


@dataclass(frozen=True)
class EvaluationInput:
    """A path that an evaluation reads; in Python also the data.

    Attributes:
        help: description of the path. option: its option; empty for an argument. many: several
            paths.
        crosswalk: the path is of a vault, and the evaluation takes the mapping of released id ->
            source id, or a function that reads it, because this package does not know releases.
    """

    help: str
    option: str = ""
    required: bool = False
    many: bool = False
    crosswalk: bool = False


@dataclass(frozen=True)
class Evaluated:
    """The result of an evaluation.

    Attributes:
        title: line above the findings. seed: seed of the findings if it is not the given one.
        lines: printed below the findings. remarks: messages for stderr.
    """

    findings: Sequence[Finding]
    title: str
    seed: int | None = None
    lines: Sequence[str] = ()
    remarks: Sequence[str] = field(default=(), repr=False)


class Evaluation(Settings):
    """One evaluation; its fields are its settings, and the first line of its docstring is its help
    text.

    Attributes:
        inputs: by name, arguments first. shown: names of the settings that are flags of the
            command.
    """

    inputs: ClassVar[Mapping[str, EvaluationInput]] = MappingProxyType({})
    shown: ClassVar[str] = "seed"
    quiet: bool = QUIET

    @abstractmethod
    def __call__(
        self, arguments: Mapping[str, Any], seed: int = 1, say: Say = lambda line: None
    ) -> Evaluated:
        """Run the evaluation. arguments: the inputs by name; missing ones may be None. say:
        receives progress lines.
        """

    @classmethod
    def help(cls) -> str:
        """Return the first line of the docstring."""
        return first_paragraph(getdoc(cls))


EVALUATIONS: Members[type[Evaluation]] = Members(
    "evaluation",
    {
        "transfer": "clinveil.utility.evaluations.transfer:Transfer",
        "similarity": "clinveil.utility.evaluations.similarity:Similarity",
        "classification": "clinveil.utility.evaluations.classification:Classification",
        "perplexity": "clinveil.utility.evaluations.perplexity:Perplexity",
        "deidentification": "clinveil.utility.evaluations.deidentification:Deidentification",
        "agreement": "clinveil.utility.evaluations.agreement:Agreement",
    },
)
VECTORS = EvaluationInput(
    "Word vectors: a folder of clinveil embed, or a .vec, .txt or .bin file.", required=True
)
VAULT = EvaluationInput("Vault of the release, if ids were replaced.", "--vault", crosswalk=True)


def as_corpus(notes: Any, settings: NotesSettings, *, label: tuple[str, ...] = ()) -> Corpus:
    """Return the notes of a path; a corpus is returned unchanged."""
    from clinveil.corpus import open_corpus

    return open_corpus(notes, settings, label=label) if isinstance(notes, Path) else notes


def as_vectors(vectors: Any) -> Vectors:
    """Return the word vectors of a path; vectors are returned unchanged."""
    from clinveil.vectors import load_vectors

    return load_vectors(vectors) if isinstance(vectors, Path) else vectors


def as_crosswalk(crosswalk: Any) -> Mapping[str, str] | None:
    """Return released id -> source id, which a function may read."""
    return crosswalk() if callable(crosswalk) else crosswalk


def name_of(data: Any, default: str) -> str:
    """Return the name of a path, or a name for other data."""
    return data.name if isinstance(data, Path) else default
