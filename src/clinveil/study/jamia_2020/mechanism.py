"""The mechanism of a setting: Algorithm 1 as published, our defaults, or noise that leaves a share of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clinveil.channel.mechanism import mechanisms
from clinveil.study.jamia_2020.treat import FLOOR, REACH, Setting

if TYPE_CHECKING:
    from clinveil.channel.mechanism import Mechanism
    from clinveil.vectors.table import Neighbours, Vectors


def table_for(setting: Setting, vectors: Vectors, table: Neighbours) -> Neighbours:
    """The neighbour table; of our defaults with the floor of patients, which the paper does not have."""
    if setting.kind != "product":
        return table
    from clinveil.vectors.floor import output_floor
    from clinveil.vectors.neighbours import neighbours

    eligible = output_floor(vectors, FLOOR, need=REACH + 1, allow_small=True)
    return neighbours(vectors, REACH, eligible=eligible, threads=1, seed=0)


def mechanism_for(setting: Setting, vectors: Vectors, table: Neighbours, seed: int) -> Mechanism:
    """The mechanism that a setting names; noise is calibrated on these vectors."""
    if setting.kind in ("neighbours", "product"):
        return mechanisms.get("neighbours")(**{"n": setting.n or "3-14"})
    from clinveil.channel.calibrate import calibrate, cast_rays

    rays = cast_rays(vectors, table.eligible, np.random.default_rng([seed, 4]))
    size = calibrate(setting.kind, rays, setting.share)
    return mechanisms.get(setting.kind)(**{"epsilon" if setting.kind == "laplace" else "sigma": size})
