"""A trained network as a `LanguageModel`; import it after `need_torch()`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from clinveil.lm.model import Logs
from clinveil.lm.network import Network, pusher_of
from clinveil.lm.scoring import score_notes
from clinveil.lm.vocabulary import Ids, Vocabulary


class NeuralModel:
    """An LSTM or a GPT that was trained."""

    def __init__(self, vocabulary: Vocabulary, network: Network) -> None:
        self.vocabulary, self.network = vocabulary, network.eval()

    @property
    def kind(self) -> str:
        """`lstm` or `gpt`."""
        return self.network.recipe.kind

    def score(self, notes: Sequence[Ids]) -> list[Logs]:
        """Log-probability of each token, without dropout."""
        return score_notes(self.network, notes)

    def stream(self, lanes: int) -> NetworkStream:
        """Notes being written."""
        return NetworkStream(self.network, lanes)


class NetworkStream:
    """Notes being written by a network."""

    def __init__(self, network: Network, lanes: int) -> None:
        with torch.inference_mode():
            self._pusher = pusher_of(network, lanes)
        self._device = network.input.device

    def probabilities(self) -> NDArray[np.float64]:
        """(lanes, size); the softmax in double precision."""
        with torch.inference_mode():
            found: NDArray[np.float64] = torch.softmax(self._pusher.scores().double(), dim=-1).cpu().numpy()
        return found

    def push(self, ids: NDArray[np.int64]) -> None:
        """One token for every lane."""
        with torch.inference_mode():
            self._pusher.push(torch.from_numpy(ids).to(self._device))

    def reset(self, lanes: NDArray[np.int64]) -> None:
        """Begin anew in these lanes."""
        with torch.inference_mode():
            self._pusher.reset(lanes.tolist())
