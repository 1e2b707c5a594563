"""Paper A's CNN with attention (Liendo, De Roo & Karmakar 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clinveil.utility.classifiers import classifiers
from clinveil.utility.classifiers._neural import MAPS, MIMIC_WIDTHS, Attention, Convolutions, Network, Neural


class CnnAttention(Network):
    """Feature maps of several widths, each with an attention over time."""

    def __init__(self, matrix: Tensor, n_classes: int, *, several: bool = False, static: bool = False) -> None:
        super().__init__(matrix, MAPS * len(MIMIC_WIDTHS), n_classes, static=static)
        self.convolutions = Convolutions(matrix.shape[1], MIMIC_WIDTHS)
        self.attentions = nn.ModuleList(Attention(MAPS) for _ in MIMIC_WIDTHS)

    def _attend(self) -> list[Attention]:
        return [module for module in self.attentions if isinstance(module, Attention)]

    def body(self, vectors: Tensor, real: Tensor) -> Tensor:
        """Return the attended maps of all widths."""
        pairs = zip(self._attend(), self.convolutions(vectors, real), strict=True)
        return torch.cat([attend(maps.transpose(1, 2), whole) for attend, (maps, whole) in pairs], dim=1)

    def penalty(self) -> Tensor:
        """Return 1e-3 times the squares of kernels, plus 1e-4 times those of attention, output and trained vectors."""
        rest = torch.stack([attend.squares() for attend in self._attend()]).sum() + (self.output.weight**2).sum()
        words = (self.words.weight**2).sum() if self.words.weight.requires_grad else torch.zeros(())
        return 1e-3 * self.convolutions.squares() + 1e-4 * (rest + words)


ABOUT = "a convolutional network with attention (paper A)"
classifiers.register("cnn-attention")(Neural(ABOUT, 220.0, CnnAttention))
