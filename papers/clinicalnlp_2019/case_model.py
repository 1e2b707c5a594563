"""The character LSTM, its training and the beam search for the casing; import it after
`need_torch()`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from clinveil import InputError
from clinveil.core import Ints, Mask, Trainer, WordIds
from papers.clinicalnlp_2019.case_lines import NEWLINE, candidates
from papers.clinicalnlp_2019.casing import CasingSettings

State = tuple[Tensor, Tensor]
INIT_RANGE = 0.08  # initial weights are uniform in (-0.08, 0.08)
SMOOTHING = 0.95
CLAMP = 5.0
EXPLODED = 3.0


class CharacterLstm(nn.Module):
    """One-hot characters, LSTM layers with dropout between and after them, and a linear layer.

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
            for layer in range(layers):  # the order of the gates is input, forget, cell, output
                self.lstm.get_parameter(f"bias_ih_l{layer}")[hidden : 2 * hidden] = 1.0

    def start(self, rows: int) -> State:
        """Return a state of zeros, (layers, rows, hidden) twice."""
        zeros = self.decoder.weight.new_zeros(self.lstm.num_layers, rows, self.lstm.hidden_size)
        return zeros, zeros.clone()

    def forward(self, characters: Tensor, state: State) -> tuple[Tensor, State]:
        """Return scores of the next character, (n_steps, rows, n_characters), and the state after
        the last step.
        """
        one_hot = functional.one_hot(characters, self.n_characters).to(self.decoder.weight.dtype)
        above, state = self.lstm(one_hot, state)
        return self.decoder(self.dropout(above)), state

    def step(self, characters: Tensor, state: State) -> tuple[Tensor, State]:
        """Return log-probabilities of the next character, (rows, n_characters), after one more,
        (rows,).

        Equal to `forward` and a softmax without dropout, but without the overhead of `nn.LSTM` for
        single steps.
        """
        hidden = []
        cells = []
        below = characters
        for layer in range(self.lstm.num_layers):
            below, cell = self._cell(layer, below, state[0][layer], state[1][layer])
            hidden.append(below)
            cells.append(cell)
        scores = functional.log_softmax(self.decoder(below), dim=1)
        return scores, (torch.stack(hidden), torch.stack(cells))

    def _cell(self, layer: int, below: Tensor, h: Tensor, c: Tensor) -> State:
        get = self.lstm.get_parameter
        inner = functional.linear(
            h, get(f"weight_hh_l{layer}"), get(f"bias_hh_l{layer}") + get(f"bias_ih_l{layer}")
        )
        outer = get(f"weight_ih_l{layer}")
        gates = inner + (outer.t()[below] if layer == 0 else functional.linear(below, outer))
        take, keep, new, give = gates.chunk(4, dim=1)
        c = torch.sigmoid(keep) * c + torch.sigmoid(take) * torch.tanh(new)
        return torch.sigmoid(give) * torch.tanh(c), c


def _columns(text: Ints, batch: int) -> Tensor:
    """Cut a text into equal columns, (n_steps + 1, columns), fewer for a short text."""
    if len(text) < 2:
        raise InputError("a text needs at least two characters")
    columns = min(batch, len(text) // 2)
    length = len(text) // columns
    return torch.from_numpy(text[: columns * length].reshape(columns, length).T.copy())


class CharacterTraining(Trainer[CharacterLstm, tuple[Tensor, Tensor]]):
    """RMSprop over columns of a text, (n_characters,); the state is kept between batches of one
    epoch.

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
    ) -> None:
        self.text, self.dev = (_columns(part, settings.batch).to(device) for part in (text, dev))
        optimizer = torch.optim.RMSprop(
            model.to(device).parameters(), lr=settings.learning_rate, alpha=SMOOTHING
        )
        per_epoch = math.ceil((len(self.text) - 1) / settings.sequence)
        super().__init__(
            model, optimizer, device, steps_per_epoch=per_epoch, steps=settings.epochs * per_epoch
        )
        self.settings = settings
        self.validate_every = settings.evaluate_every
        self._best_step = 0
        self._first = 0.0
        self._state = model.start(self.text.shape[1])

    @property
    def history(self) -> dict[str, float]:
        """Lowest dev loss (nats per character), epochs, and epoch of the best weights."""
        return {
            "dev_loss": self.progress.best,
            "epochs": self.progress.step / self.steps_per_epoch,
            "best_epoch": self._best_step / self.steps_per_epoch,
        }

    def finish(self) -> CharacterLstm:
        """Return the model with the lowest dev loss. Raises InputError if training diverged from
        the start.
        """
        if self.best is None:
            raise InputError(
                "training diverged from the start", hint="pass a smaller learning_rate"
            )
        return super().finish()

    def batches(self, step: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the pieces of the text; each epoch starts with a state of zeros."""
        for _ in range(self.settings.epochs):
            self._state = self.network.start(self.text.shape[1])
            yield from _pieces(self.text, self.settings.sequence)

    def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Return the mean -ln P per character."""
        rows, targets = batch
        scores, self._state = self.network(rows, (self._state[0].detach(), self._state[1].detach()))
        return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())

    def checked(self, value: float, batch: tuple[Tensor, Tensor]) -> None:
        """Stop if the loss is three times the first one, or not finite."""
        self._first = self._first or value
        if not value <= EXPLODED * self._first:
            self.stopped = "loss exploded"

    def after_epoch(self) -> None:
        """Decay the learning rate."""
        if self.progress.step >= self.settings.decay_after * self.steps_per_epoch:
            for group in self.optimizer.param_groups:
                group["lr"] *= self.settings.decay

    def validate(self) -> float:
        """Return the dev loss; if it is not finite, the largest float, and the next step stops
        training.
        """
        loss = dev_loss(self.network, self.dev, self.settings.sequence)
        return loss if math.isfinite(loss) else sys.float_info.max

    def keep(self) -> None:
        """Keep the weights and their step."""
        super().keep()
        self._best_step = self.progress.step


def dev_loss(model: CharacterLstm, columns: Tensor, sequence: int) -> float:
    """Return the mean -ln P of all characters except the first of each column."""
    model.eval()
    state = model.start(columns.shape[1])
    total = 0.0
    with torch.no_grad():
        for rows, targets in _pieces(columns, sequence):
            scores, state = model(rows, state)
            total += float(
                functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="sum")
            )
    return total / ((len(columns) - 1) * columns.shape[1])


def _pieces(columns: Tensor, sequence: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield characters and the following characters, (n_steps, columns) each."""
    for start in range(0, len(columns) - 1, sequence):
        rows = columns[start : start + sequence + 1]
        yield rows[:-1], rows[1:]


def restore(
    model: CharacterLstm, alphabet: WordIds, lowered: Sequence[str], settings: CasingSettings
) -> list[str]:
    """Restore the case of lines in lower case by beam search.

    The candidates of each character are its lower and upper case, if training contains the latter
    as one character. A newline comes first and is not scored. The text is searched as one string,
    in `streams` equal parts.

    Source: sample.lua of raymondhs/char-rnn-truecase; ties are sorted and cut as in its Python
    port.
    """
    model.eval()
    pieces = np.array_split(np.arange(len(lowered)), min(settings.streams, max(1, len(lowered))))
    texts = ["\n".join(lowered[row] for row in piece) for piece in pieces]
    return [
        line
        for text in _searched(model, alphabet, texts, settings.beam)
        for line in text.split("\n")
    ]


def _searched(model: CharacterLstm, alphabet: WordIds, texts: list[str], beam: int) -> list[str]:
    length = max(map(len, texts), default=0)
    forms = np.full((length, len(texts), 2), -1, dtype=np.int64)
    for column, text in enumerate(texts):
        forms[: len(text), column] = candidates(alphabet, text)
    uppers = _uppers(model, torch.from_numpy(forms).to(model.decoder.weight.device), beam)
    return [
        "".join(
            c.upper() if up else c for c, up in zip(text, uppers[: len(text), column], strict=True)
        )
        for column, text in enumerate(texts)
    ]


@torch.no_grad()
def _uppers(model: CharacterLstm, forms: Tensor, beam: int) -> Mask:
    """Return which characters are upper case in the best hypothesis, (n_steps, n_texts)."""
    steps, texts, _ = forms.shape
    parents = np.zeros((steps, texts, beam), dtype=np.int16)
    choices = np.zeros((steps, texts, beam), dtype=np.bool_)
    search = _Beam(model, texts, beam)
    for step, pair in enumerate(forms):
        parent, choice = search.advance(pair)
        parents[step] = parent.cpu().numpy()
        choices[step] = choice.cpu().numpy()
    upper = np.zeros((steps, texts), dtype=np.bool_)
    best = np.zeros(texts, dtype=np.int64)
    every = np.arange(texts)
    for step in range(steps - 1, -1, -1):  # the best hypothesis comes first
        upper[step] = choices[step, every, best]
        best = parents[step, every, best].astype(np.int64)
    return upper


class _Beam:
    """Hypotheses of all texts, (n_texts, beam): scores, last characters and states."""

    def __init__(self, model: CharacterLstm, texts: int, beam: int) -> None:
        self.model = model
        self.beam = beam
        device = model.decoder.weight.device
        self.scores = torch.full((texts, beam), -torch.inf, device=device)
        self.scores[:, 0] = 0.0
        self.last = torch.full((texts * beam,), NEWLINE, device=device)
        self.state: State = model.start(texts * beam)
        self.rows = torch.arange(texts, device=device)[:, None] * beam

    def advance(self, pair: Tensor) -> tuple[Tensor, Tensor]:
        """Extend by one character with candidates (n_texts, 2); return the parent and the case of
        each hypothesis.

        Hypotheses of a text that has ended (candidates of -1) do not change.
        """
        texts, beam = self.scores.shape
        log_p, state = self.model.step(self.last, self.state)
        asked = pair[:, None, :].expand(texts, beam, 2)
        gained = log_p.view(texts, beam, -1).gather(2, asked.clamp(min=0))
        gained = gained.masked_fill(asked < 0, -torch.inf)
        gained[:, :, 0] = gained[:, :, 0].where(pair[:, :1] >= 0, 0.0)
        total = (self.scores[:, :, None] + gained).flatten(1)
        self.scores, kept = total.topk(beam, dim=1)
        parent = kept // 2
        upper = kept % 2
        rows = (self.rows + parent).flatten()
        self.last = pair.gather(1, upper).clamp(min=0).flatten()
        self.state = (state[0][:, rows], state[1][:, rows])
        return parent, upper.bool()
