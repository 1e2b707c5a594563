"""The mechanism of a setting: Algorithm 1 as published, our defaults, or noise that leaves a share of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clinveil.channel.mechanisms.neighbours import NeighbourMechanism
from clinveil.study.jamia_2020.treat import FLOOR, REACH, Setting

if TYPE_CHECKING:
    from clinveil.channel.mechanisms.mechanism import Mechanism
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
        low, _, high = (setting.n or "3-14").partition("-")
        return NeighbourMechanism(int(low), int(high or low))
    from clinveil.channel.calibrate import epsilon_for, sigma_for
    from clinveil.channel.mechanisms.gaussian import GaussianMechanism
    from clinveil.channel.mechanisms.laplace import LaplaceMechanism

    rng = np.random.default_rng([seed, 4])
    if setting.kind == "laplace":
        return LaplaceMechanism(epsilon_for(vectors, table.eligible, rng, unchanged=setting.share), 100, seed)
    return GaussianMechanism(sigma_for(vectors, table.eligible, rng, unchanged=setting.share), 100, seed)
