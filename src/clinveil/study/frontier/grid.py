"""The settings that the frontier compares, each under a short name, and which papers used them; three sizes.

`unprotected` is the control: every word comes out as it went in, and must be read and linked nearly always.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from clinveil.channel.settings import ChannelSettings
from clinveil.core.errors import UsageError
from clinveil.releases.settings import ReleaseChannelSettings
from clinveil.vectors.settings import VectorSettings

CONTROL, RELEASE, OLD, PAPER_7 = "unprotected", "release", "old-default", "paper-n7"
VECTORS = {
    "paper": VectorSettings(algorithm="cbow", window=5, epochs=5),
    "default": VectorSettings(),
}
"""Paper A's vectors, and the product's."""
Size = Literal["tiny", "small", "paper"]
Value = str | int | float
SHUFFLED: dict[str, Value] = {"shuffle": "window", "vary_length": 0.2}


@dataclass(frozen=True)
class Cell:
    """One setting: whose vectors, which mechanism with what strength, and what is done beside it.

    Attributes:
        told: settings of the channel by name, beyond their defaults. paper: which paper's setting it is.
    """

    name: str
    vectors: str
    told: tuple[tuple[str, Value], ...] = ()
    paper: str = ""

    @property
    def channel(self) -> ChannelSettings:
        """The channel's settings; those of `release` are whatever a release takes now. Raises ValueError."""
        kind = ReleaseChannelSettings if self.name == RELEASE else ChannelSettings
        return kind.model_validate({"allow_small": True, **dict(self.told)})


def _cell(name: str, told: Mapping[str, Value], vectors: str = "default", paper: str = "") -> Cell:
    return Cell(name, vectors, tuple(sorted(told.items())), paper)


def _clusters() -> list[Cell]:
    found = []
    for size in (8, 16):
        for outputs in (1, 3):
            how: dict[str, Value] = {"mechanism": "clusters", "memo": "rare"}
            how |= {"cluster_size": size, "cluster_outputs": outputs}
            name = f"clusters-{size}x{outputs}"
            found += [_cell(name, how), _cell(f"{name}-shuffled", how | SHUFFLED)]
        found.append(_cell(f"clusters-{size}x1-note", how | {"cluster_outputs": 1} | SHUFFLED | {"shuffle": "note"}))
    return found


UNPROTECTED = _cell(CONTROL, {})
OF_A = "paper A's mechanism and vectors"
PAPERS = [
    _cell(OLD, {"n": "3-14", "memo": "patient"}, "paper", f"{OF_A}, memo by patient"),
    _cell(PAPER_7, {"n": "7"}, "paper", OF_A),
]
_NOISY: dict[str, Value] = {"mechanism": "exponential", "memo": "rare"}
_LEAST: dict[str, Value] = {"mechanism": "rate-distortion", "memo": "rare"}
_MATCHED: dict[str, Value] = {"mechanism": "matched", "memo": "rare", "n": "30"}
OURS = [
    _cell("neighbours-3-14", {"n": "3-14", "memo": "patient"}),
    _cell("neighbours-7", {"n": "7"}),
    _cell("neighbours-30", {"n": "30", "memo": "rare"}),
    _cell("matched-30", _MATCHED),
    _cell("matched-30-shuffled", _MATCHED | SHUFFLED),
    _cell(RELEASE, {}),
    *_clusters(),
    _cell("clusters-8x1-own-words", {"mechanism": "clusters", "memo": "rare", "cluster_words": "own"} | SHUFFLED),
    _cell("exponential-10", _NOISY | {"epsilon": 10.0}),
    _cell("least-information-5", _LEAST | {"beta": 5.0}),
    _cell("least-information-20", _LEAST | {"beta": 20.0}),
]
ALL = [UNPROTECTED, *PAPERS, *OURS]
TINY = (CONTROL, OLD, "matched-30-shuffled", RELEASE)


def grid(size: Size, names: Sequence[str] = ()) -> list[Cell]:
    """The settings of a size, or those named and the control.

    Size `paper` also has every mechanism with the paper's vectors. Raises UsageError for a name that is not there.
    """
    known = {cell.name: cell for cell in [*ALL, *_with_papers_vectors()]}
    if unknown := sorted(set(names) - known.keys()):
        raise UsageError(f"no such setting: {', '.join(unknown)}", remedy="one or several of " + ", ".join(known))
    wanted = {"tiny": TINY, "small": [cell.name for cell in ALL], "paper": list(known)}[size]
    chosen = {CONTROL, *names} if names else set(wanted)
    return [cell for name, cell in known.items() if name in chosen]


def _with_papers_vectors() -> list[Cell]:
    taken = {(cell.vectors, cell.told) for cell in PAPERS}
    others = [cell for cell in OURS if cell.name != RELEASE and ("paper", cell.told) not in taken]
    return [replace(cell, name=f"{cell.name}-papers-vectors", vectors="paper") for cell in others]


def told(cell: Cell) -> dict[str, Any]:
    """What a finding says of a setting."""
    return {"setting": cell.name, "of_vectors": cell.vectors}
