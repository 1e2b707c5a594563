"""Log-probabilities of whole notes under a network; import it after `need_torch()`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from clinveil.lm.model import Logs
from clinveil.lm.network import Network
from clinveil.lm.vocabulary import END, Ids

LANES = 16  # notes scored at once; fixed, so that equal weights give equal bits
PIECE = 64  # tokens of each at once: what bounds the memory of the scores


def score_notes(network: Network, notes: Sequence[Ids]) -> list[Logs]:
    """Of each note the natural log of each token's probability, without dropout.

    Notes are grouped by length; a note's bits depend on which others are in the call, through rounding only.
    """
    network.eval()
    order = sorted(range(len(notes)), key=lambda row: notes[row].size)
    found: dict[int, Logs] = {}
    one = _carried if network.recipe.kind == "lstm" else _windows
    with torch.inference_mode():
        for start in range(0, len(order), LANES):
            rows = order[start : start + LANES]
            found.update(zip(rows, one(network, [notes[row] for row in rows]), strict=True))
    return [found[row] for row in range(len(notes))]


def _primed(network: Network, notes: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """(longest, n_notes) inputs and targets, filled up with ends."""
    length = max(note.size for note in notes)
    targets = np.full((length, len(notes)), END, dtype=np.int64)
    for lane, note in enumerate(notes):
        targets[: note.size, lane] = note
    inputs = np.concatenate([np.full((1, len(notes)), END, dtype=np.int64), targets[:-1]])
    return torch.from_numpy(inputs).to(network.input.device), torch.from_numpy(targets).to(network.input.device)


def _gathered(network: Network, below: Tensor, targets: Tensor) -> Tensor:
    """Natural logs; the softmax in single precision or better."""
    scores = network.scores(below).float() if below.dtype == torch.bfloat16 else network.scores(below)
    return torch.log_softmax(scores, dim=-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def _cut(logs: Tensor, notes: Sequence[Ids]) -> Iterator[Logs]:
    rows = logs.double().cpu().numpy()
    return (rows[: note.size, lane].copy() for lane, note in enumerate(notes))


def _carried(network: Network, notes: Sequence[Ids]) -> list[Logs]:
    """A recurrent network: piece by piece, the state goes on."""
    inputs, targets = _primed(network, notes)
    state, pieces = network.start(len(notes)), []
    for start in range(0, len(inputs), PIECE):
        below, state = network(inputs[start : start + PIECE], state)
        pieces.append(_gathered(network, below, targets[start : start + PIECE]))
    return list(_cut(torch.cat(pieces), notes))


def _windows(network: Network, notes: Sequence[Ids]) -> list[Logs]:
    """A network with a window: from the second window on, the second half of each counts."""
    inputs, targets = _primed(network, notes)
    window, pieces = network.recipe.window, []
    for start in range(0, max(len(inputs) - window // 2, 1), window // 2):
        skip = window // 2 if start else 0
        below, _ = network(inputs[start : start + window], ())
        kept, wanted = below[skip:], targets[start + skip : start + window]
        for at in range(0, len(wanted), PIECE):
            pieces.append(_gathered(network, kept[at : at + PIECE], wanted[at : at + PIECE]))
    return list(_cut(torch.cat(pieces), notes))
