"""The character LSTM, its training and the beam search for the casing of a text; import it after `need_torch()`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from clinveil.core.errors import InputError
from clinveil.core.fit import Trainer
from clinveil.core.tokens import WordIds
from clinveil.core.types import Ints, Mask
from clinveil.utility.casing import CasingSettings, OnLook
from clinveil.utility.casing.lines import NEWLINE, candidates

State = tuple[Tensor, Tensor]
INIT_RANGE = 0.08  # first weights are uniform in (-0.08, 0.08)
SMOOTHING, CLAMP, EXPLODED = 0.95, 5.0, 3.0
LINES = 64  # searched side by side where each starts anew


class CharacterLstm(nn.Module):
    """One-hot characters, LSTM layers with dropout between and above them, a linear layer.

    Source: Susanto, Chieu & Lu 2016; LSTM.lua of raymondhs/char-rnn-truecase.
    """

    def __init__(self, n_characters: int, layers: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.n_characters = n_characters
        self.lstm = nn.LSTM(n_characters, hidden, layers, dropout=dropout if layers > 1 else 0.0)
        self.dropout = nn.Dropout(dropout)
        self.decoder = nn.Linear(hidden, n_characters)
        with torch.no_grad():
            for weight in self.parameters():
                weight.uniform_(-INIT_RANGE, INIT_RANGE)
            for layer in range(layers):  # gates stand in the order input, forget, cell, output
                self.lstm.get_parameter(f"bias_ih_l{layer}")[hidden : 2 * hidden] = 1.0

    def start(self, rows: int) -> State:
        """A state of zeros, (layers, rows, hidden) twice."""
        zeros = self.decoder.weight.new_zeros(self.lstm.num_layers, rows, self.lstm.hidden_size)
        return zeros, zeros.clone()

    def forward(self, characters: Tensor, state: State) -> tuple[Tensor, State]:
        """(n_steps, rows, n_characters) scores of the next character, and the state after the last step."""
        one_hot = functional.one_hot(characters, self.n_characters).to(self.decoder.weight.dtype)
        above, state = self.lstm(one_hot, state)
        return self.decoder(self.dropout(above)), state

    def step(self, characters: Tensor, state: State) -> tuple[Tensor, State]:
        """(rows, n_characters) log-probabilities of the next character after one more, (rows,), without dropout.

        The same as `forward` and a softmax, but without what `nn.LSTM` prepares at each call.
        """
        hidden, cells, below = [], [], characters
        for layer in range(self.lstm.num_layers):
            below, cell = self._cell(layer, below, state[0][layer], state[1][layer])
            hidden.append(below)
            cells.append(cell)
        scores = functional.log_softmax(self.decoder(below), dim=1)
        return scores, (torch.stack(hidden), torch.stack(cells))

    def _cell(self, layer: int, below: Tensor, h: Tensor, c: Tensor) -> State:
        get = self.lstm.get_parameter
        inner = functional.linear(h, get(f"weight_hh_l{layer}"), get(f"bias_hh_l{layer}") + get(f"bias_ih_l{layer}"))
        outer = get(f"weight_ih_l{layer}")
        gates = inner + (outer.t()[below] if layer == 0 else functional.linear(below, outer))
        take, keep, new, give = gates.chunk(4, dim=1)
        c = torch.sigmoid(keep) * c + torch.sigmoid(take) * torch.tanh(new)
        return torch.sigmoid(give) * torch.tanh(c), c


def _columns(text: Ints, batch: int) -> Tensor:
    """(n_steps + 1, columns): the text cut into equal columns, fewer of them where it is short."""
    if len(text) < 2:
        raise InputError("a text of fewer than two characters is too short")
    columns = min(batch, len(text) // 2)
    length = len(text) // columns
    return torch.from_numpy(text[: columns * length].reshape(columns, length).T.copy())


class CharacterTraining(Trainer[CharacterLstm, tuple[Tensor, Tensor]]):
    """RMSprop over columns of a text, (n_characters,); the state goes on from batch to batch, through one pass.

    Raises InputError for fewer than two characters.
    """

    clip_value = CLAMP

    def __init__(
        self,
        model: CharacterLstm,
        text: Ints,
        dev: Ints,
        settings: CasingSettings,
        device: torch.device,
        on_look: OnLook | None = None,
    ) -> None:
        self.text, self.dev = (_columns(part, settings.batch).to(device) for part in (text, dev))
        optimizer = torch.optim.RMSprop(model.to(device).parameters(), lr=settings.learning_rate, alpha=SMOOTHING)
        per_epoch = math.ceil((len(self.text) - 1) / settings.sequence)
        super().__init__(model, optimizer, device, steps_per_epoch=per_epoch, steps=settings.epochs * per_epoch)
        self.settings, self.on_look, self.look_every = settings, on_look, settings.evaluate_every
        self.max_seconds = 60 * settings.max_minutes if settings.max_minutes else None
        self._best_step, self._first = 0, 0.0
        self._state = model.start(self.text.shape[1])

    @property
    def history(self) -> dict[str, Any]:
        """How training went: the lowest dev loss (nats a character), passes made, where the best weights come from."""
        epochs, best = (step / self.steps_per_epoch for step in (self.progress.step, self._best_step))
        stopped = self.stopped or "all epochs"
        return {"dev_loss": self.progress.best, "epochs": epochs, "best_epoch": best, "stopped": stopped}

    def finish(self) -> CharacterLstm:
        """The model of the lowest dev loss. Raises InputError where training exploded before the first look."""
        if self.best is None:
            raise InputError("the loss grows or is no number from the start", hint="a smaller --learning-rate")
        return super().finish()

    def batches(self, step: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The pieces of the text; each pass begins with a state of zeros."""
        for _ in range(self.settings.epochs):
            self._state = self.network.start(self.text.shape[1])
            yield from _pieces(self.text, self.settings.sequence)

    def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """The mean -ln P a character."""
        rows, targets = batch
        scores, self._state = self.network(rows, (self._state[0].detach(), self._state[1].detach()))
        return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())

    def checked(self, value: float, batch: tuple[Tensor, Tensor]) -> None:
        """End where the loss is thrice the first one, or no number."""
        self._first = self._first or value
        if not value <= EXPLODED * self._first:
            self.stopped = "loss exploded"

    def after_epoch(self) -> None:
        """A smaller learning rate."""
        if self.progress.step >= self.settings.decay_after * self.steps_per_epoch:
            for group in self.optimizer.param_groups:
                group["lr"] *= self.settings.decay

    def validate(self) -> float:
        """The dev loss; one that is no number is never the lowest, and the next step says that training exploded."""
        loss = dev_loss(self.network, self.dev, self.settings.sequence)
        if self.on_look:
            self.on_look(self.progress.step, self.progress.step / self.steps_per_epoch, loss)
        return loss if math.isfinite(loss) else sys.float_info.max

    def keep(self) -> None:
        """Also note the step."""
        super().keep()
        self._best_step = self.progress.step


def dev_loss(model: CharacterLstm, columns: Tensor, sequence: int) -> float:
    """The mean of -ln P over all characters but the first of each column."""
    model.eval()
    state, total = model.start(columns.shape[1]), 0.0
    with torch.no_grad():
        for rows, targets in _pieces(columns, sequence):
            scores, state = model(rows, state)
            total += float(functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="sum"))
    return total / ((len(columns) - 1) * columns.shape[1])


def _pieces(columns: Tensor, sequence: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Characters and those that follow them, (n_steps, columns) each."""
    for start in range(0, len(columns) - 1, sequence):
        rows = columns[start : start + sequence + 1]
        yield rows[:-1], rows[1:]


def restore(model: CharacterLstm, alphabet: WordIds, lowered: Sequence[str], settings: CasingSettings) -> list[str]:
    """Lines in lower case as the model would case them.

    At each character the hypotheses are its two forms, the upper one only where it is a single character that
    training holds; the best by the sum of log-probabilities are kept. A newline goes first and is not scored. The text
    is one string, or `streams` equal parts of it, or each line alone.

    Source: sample.lua of raymondhs/char-rnn-truecase; its Python port sorts and cuts ties, and so does this.
    """
    model.eval()
    if settings.state == "line":
        order = sorted(range(len(lowered)), key=lambda row: -len(lowered[row]))
        found: dict[int, str] = {}
        for start in range(0, len(order), LINES):
            part = order[start : start + LINES]
            found |= dict(zip(part, _searched(model, alphabet, [lowered[r] for r in part], settings.beam), strict=True))
        return [found[row] for row in range(len(lowered))]
    pieces = np.array_split(np.arange(len(lowered)), min(settings.streams, max(1, len(lowered))))
    texts = ["\n".join(lowered[row] for row in piece) for piece in pieces]
    return [line for text in _searched(model, alphabet, texts, settings.beam) for line in text.split("\n")]


def _searched(model: CharacterLstm, alphabet: WordIds, texts: list[str], beam: int) -> list[str]:
    length = max(map(len, texts), default=0)
    forms = np.full((length, len(texts), 2), -1, dtype=np.int64)
    for place, text in enumerate(texts):
        forms[: len(text), place] = candidates(alphabet, text)
    uppers = _uppers(model, torch.from_numpy(forms).to(model.decoder.weight.device), beam)
    return [
        "".join(c.upper() if up else c for c, up in zip(text, uppers[: len(text), place], strict=True))
        for place, text in enumerate(texts)
    ]


@torch.no_grad()
def _uppers(model: CharacterLstm, forms: Tensor, beam: int) -> Mask:
    """(n_steps, n_texts) which characters the best hypothesis writes in upper case, followed back from the end."""
    steps, texts, _ = forms.shape
    parents = np.zeros((steps, texts, beam), dtype=np.int16)
    choices = np.zeros((steps, texts, beam), dtype=np.bool_)
    search = _Beam(model, texts, beam)
    for step, pair in enumerate(forms):
        parent, choice = search.advance(pair)
        parents[step], choices[step] = parent.cpu().numpy(), choice.cpu().numpy()
    found, place, every = np.zeros((steps, texts), dtype=np.bool_), np.zeros(texts, dtype=np.int64), np.arange(texts)
    for step in range(steps - 1, -1, -1):  # the best hypothesis stands first
        found[step] = choices[step, every, place]
        place = parents[step, every, place].astype(np.int64)
    return found


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
