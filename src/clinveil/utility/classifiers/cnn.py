"""Kim's CNN for sentiment (arXiv 1408.5882); with several labels it has the windows of paper A's MIMIC task."""

from __future__ import annotations

import torch
from torch import Tensor, nn, optim

from clinveil.utility.classifiers import classifiers
from clinveil.utility.classifiers._neural import BELOW, MAPS, MIMIC_WIDTHS, Convolutions, Network, Neural

KIM_WIDTHS, LARGEST_NORM = (3, 4, 5), 3.0


class Cnn(Network):
    """Kim's CNN: max pooling over time, and output weights with a norm of at most 3 per class."""

    def __init__(self, matrix: Tensor, n_classes: int, *, several: bool = False, static: bool = False) -> None:
        widths = MIMIC_WIDTHS if several else KIM_WIDTHS
        super().__init__(matrix, MAPS * len(widths), n_classes, static=static)
        self.convolutions = Convolutions(matrix.shape[1], widths)

    def body(self, vectors: Tensor, real: Tensor) -> Tensor:
        """Return the largest value of each map."""
        pooled = [
            maps.masked_fill(~whole.unsqueeze(1), BELOW).amax(dim=2) for maps, whole in self.convolutions(vectors, real)
        ]
        return torch.cat(pooled, dim=1)

    @torch.no_grad()
    def constrain(self) -> None:
        """Rescale rows of the output matrix to a norm of at most 3."""
        norms = self.output.weight.norm(dim=1, keepdim=True).clamp_min(1e-12)
        self.output.weight.mul_((LARGEST_NORM / norms).clamp_max(1.0))


def _optimizer(weights: list[nn.Parameter], several: bool) -> optim.Optimizer:
    """Return Adadelta as in Kim 2014, or Adam as in the MIMIC task for several labels."""
    return optim.Adam(weights, lr=1e-3) if several else optim.Adadelta(weights, lr=1.0, rho=0.95, eps=1e-6)


classifiers.register("cnn")(Neural("a convolutional network (Kim 2014)", 130.0, Cnn, _optimizer))
