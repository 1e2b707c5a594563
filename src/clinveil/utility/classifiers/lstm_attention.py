"""Paper A's LSTM with attention (Liendo, De Roo & Karmakar 2017)."""

from __future__ import annotations

from functools import partial

from clinveil.utility.classifiers import classifiers
from clinveil.utility.classifiers._neural import Neural
from clinveil.utility.classifiers.lstm import Lstm

classifiers.register("lstm-attention")(Neural("an LSTM with attention (paper A)", 80.0, partial(Lstm, attention=True)))
