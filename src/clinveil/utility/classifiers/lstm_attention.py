"""Paper A's LSTM with attention (Liendo, De Roo & Karmakar 2017)."""

from __future__ import annotations

from torch import Tensor

from clinveil.utility.classifiers import classifiers
from clinveil.utility.classifiers._neural import Network, Neural
from clinveil.utility.classifiers.lstm import Lstm


def _network(matrix: Tensor, n_classes: int, *, several: bool, static: bool) -> Network:
    return Lstm(matrix, n_classes, attention=True, static=static)


classifiers.register("lstm-attention")(Neural("an LSTM with attention (paper A)", 80.0, _network))
