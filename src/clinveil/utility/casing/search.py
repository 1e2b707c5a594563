"""Beam search for the casing of a text under the character model; import it after `need_torch()`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clinveil.utility.casing.characters import NEWLINE, Characters
from clinveil.utility.casing.lstm import CharacterLstm, State
from clinveil.utility.casing.settings import CasingSettings

LINES = 64  # searched side by side where each starts anew


def restore(
    model: CharacterLstm, characters: Characters, lowered: Sequence[str], settings: CasingSettings
) -> list[str]:
    """Lines in lower case as the model would case them.

    At each character the hypotheses are its two forms, the upper one only where it is a single character that
    training holds; the best by the sum of log-probabilities are kept. A newline goes first and is not scored. The text
    is one string, or `streams` equal parts of it, or each line alone.

    Source: sample.lua of raymondhs/char-rnn-truecase; its Python port sorts and cuts ties, and so does this.
    """
    model.eval()
    if settings.state == "line":
        order = sorted(range(len(lowered)), key=lambda row: -len(lowered[row]))
        parts = [order[start : start + LINES] for start in range(0, len(order), LINES)]
        found: dict[int, str] = {}
        for part in parts:
            found |= dict(
                zip(part, _searched(model, characters, [lowered[r] for r in part], settings.beam), strict=True)
            )
        return [found[row] for row in range(len(lowered))]
    pieces = np.array_split(np.arange(len(lowered)), min(settings.streams, max(1, len(lowered))))
    texts = ["\n".join(lowered[row] for row in piece) for piece in pieces]
    return [line for text in _searched(model, characters, texts, settings.beam) for line in text.split("\n")]


def _searched(model: CharacterLstm, characters: Characters, texts: list[str], beam: int) -> list[str]:
    length = max(map(len, texts), default=0)
    candidates = np.full((length, len(texts), 2), -1, dtype=np.int64)
    for place, text in enumerate(texts):
        candidates[: len(text), place] = characters.candidates(text)
    uppers = _uppers(model, candidates, beam)
    return [
        "".join(c.upper() if up else c for c, up in zip(text, uppers[: len(text), place], strict=True))
        for place, text in enumerate(texts)
    ]


def _uppers(model: CharacterLstm, candidates: NDArray[np.int64], beam: int) -> NDArray[np.bool_]:
    """(n_steps, n_texts) which characters the best hypothesis writes in upper case."""
    steps, texts, _ = candidates.shape
    parents = np.zeros((steps, texts, beam), dtype=np.int16)
    choices = np.zeros((steps, texts, beam), dtype=np.bool_)
    device = model.decoder.weight.device
    search = _Beam(model, texts, beam)
    with torch.no_grad():
        for step, pair in enumerate(torch.from_numpy(candidates).to(device)):
            parent, choice = search.advance(pair)
            parents[step], choices[step] = parent.cpu().numpy(), choice.cpu().numpy()
    return _best(parents, choices)


class _Beam:
    """The hypotheses of all texts, (n_texts, beam): their scores, last characters and states."""

    def __init__(self, model: CharacterLstm, texts: int, beam: int) -> None:
        self.model, self.beam = model, beam
        device = model.decoder.weight.device
        self.scores = torch.full((texts, beam), -torch.inf, device=device)
        self.scores[:, 0] = 0.0
        self.last = torch.full((texts * beam,), NEWLINE, device=device)
        self.state: State = model.start(texts * beam)
        self.rows = torch.arange(texts, device=device)[:, None] * beam

    def advance(self, pair: Tensor) -> tuple[Tensor, Tensor]:
        """One character on, (n_texts, 2) candidates: the parent of each hypothesis kept, and whether it is upper.

        A text that has ended (its candidates are -1) keeps its hypotheses as they are.
        """
        texts, beam = self.scores.shape
        log_p, state = self.model.step(self.last, self.state)
        asked = pair[:, None, :].expand(texts, beam, 2)
        gained = log_p.view(texts, beam, -1).gather(2, asked.clamp(min=0))
        gained = gained.masked_fill(asked < 0, -torch.inf)
        gained[:, :, 0] = gained[:, :, 0].where(pair[:, :1] >= 0, 0.0)
        total = (self.scores[:, :, None] + gained).flatten(1)
        self.scores, kept = total.topk(beam, dim=1)
        parent, upper = kept // 2, kept % 2
        rows = (self.rows + parent).flatten()
        self.last = pair.gather(1, upper).clamp(min=0).flatten()
        self.state = (state[0][:, rows], state[1][:, rows])
        return parent, upper.bool()


def _best(parents: NDArray[np.int16], choices: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Follow the best hypothesis, which stands first, back from the end."""
    steps, texts, _ = parents.shape
    found, place, every = np.zeros((steps, texts), dtype=np.bool_), np.zeros(texts, dtype=np.int64), np.arange(texts)
    for step in range(steps - 1, -1, -1):
        found[step] = choices[step, every, place]
        place = parents[step, every, place].astype(np.int64)
    return found
