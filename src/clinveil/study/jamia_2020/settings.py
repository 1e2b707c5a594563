"""Settings of the study of paper A: grid, models, and three sizes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import field_validator

from clinveil.channel.settings import NeighbourRange
from clinveil.core.settings import LABEL, flag
from clinveil.study.engine import CommonSettings, choices
from clinveil.utility.classifiers import classifiers

PAPER_N = ("0", "3", "5", "7", "9", "3-14")
ALGORITHMS = ("cbow", "skipgram")
NOISE = ("laplace", "gaussian")


class StudySettings(CommonSettings):
    """Settings of `clinveil study jamia-2020`."""

    PROFILES: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
        {
            "tiny": {
                "n": ("0", "3"),
                "algorithm": ("cbow",),
                "model": ("lr",),
                "repetitions": 2,
                "dim": 16,
                "unchanged": (0.5,),
                "max_documents": 400,
                "max_tokens": 60,
                "min_class": 10,
                "transfers": False,
            },
            "paper": {"model": classifiers.names(), "seeds": 3, "max_documents": 10**9, "max_tokens": 5_000},
        }
    )
    label: tuple[str, ...] = LABEL
    n: tuple[str, ...] = flag(PAPER_N, "Values of N, 0 for the original; repeatable (default: the paper's).")
    algorithm: tuple[str, ...] = flag(ALGORITHMS, "Vectors that define the neighbours: cbow, skipgram; repeatable.")
    model: tuple[str, ...] = flag(("lr", "svm", "cnn", "lstm"), "Classifiers; repeatable.")
    similarity_algorithm: tuple[str, ...] = flag(("cbow",), "Vectors retrained and scored on word pairs; repeatable.")
    subwords: bool = flag(True, "Get vectors of unknown words from fastText, trained on the same protected text.")
    repetitions: int = flag(5, "Repetitions of obfuscation and training (paper: 5).", ge=2, le=100)
    seeds: int = flag(1, "Runs of each network.", ge=1, le=20)
    dim: int = flag(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = flag(5, "Context words on either side.", ge=1, le=100)
    negative: int = flag(5, "Negative samples.", ge=1, le=100)
    epochs: int = flag(5, "Epochs of vector training.", ge=1, le=1000)
    unchanged: tuple[float, ...] = flag((0.25, 0.5), "Share of tokens that noise leaves unchanged; repeatable.")
    noise: tuple[str, ...] = flag(NOISE, "Noise mechanisms to compare: laplace, gaussian; repeatable.")
    baselines: bool = flag(True, "Also measure PHI removed, PHI replaced, and noise.")
    transfers: bool = flag(True, "Also the supplement's transfers: vectors of one side on text of the other (cnn).")
    max_documents: int = flag(5_000, "Maximum number of documents, sampled at random.", ge=20)
    max_tokens: int = flag(200, "Words of each document; longer documents are truncated first.", ge=5)
    min_class: int = flag(50, "Leave out classes with fewer notes.", ge=2)
    separator: str | None = flag(None, "Separator of several labels of one note.")
    device: str = flag("cpu", "Networks: cpu or cuda.")

    @field_validator("n")
    @classmethod
    def _ranges(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if value != "0" and NeighbourRange.model_validate(NeighbourRange.parse(value)).low < 2:
                raise ValueError("N must be 0 (the original), 2 or more, or a range such as 3-14")
        return tuple(dict.fromkeys(("0", *values)))

    @field_validator("algorithm", "similarity_algorithm", "model", "noise")
    @classmethod
    def _known(cls, values: tuple[str, ...], info: Any) -> tuple[str, ...]:
        return choices(values, {"model": classifiers.names(), "noise": NOISE}.get(info.field_name, ALGORITHMS))

    @field_validator("unchanged")
    @classmethod
    def _shares(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 < value < 1 for value in values):
            raise ValueError("must be shares between 0 and 1")
        return tuple(sorted(set(values)))
