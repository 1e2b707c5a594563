"""The training loop: batches in order, the best weights, patience, time, seeds of steps, a request
to stop.
"""

from __future__ import annotations

import pytest

from clinveil.core import InputError

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
from clinveil.core import Trainer, mixed  # noqa: E402


class Line(Trainer):
    """One weight that goes to 0 by its gradient; validation losses are told."""

    def __init__(self, said=(), *, steps=12, per_epoch=3, scale=1.0):
        network = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.ones_(network.weight)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        super().__init__(
            network, optimizer, torch.device("cpu"), steps_per_epoch=per_epoch, steps=steps
        )
        self.said = iter(said)
        self.scale = scale
        self.seen = []
        self.drawn = []
        self.kept = []

    def batches(self, step):
        return iter(range(step, self.steps))

    def loss(self, batch):
        self.seen.append(batch)
        self.drawn.append(torch.rand(1).item())
        return self.scale * self.network.weight.square().sum()

    def validate(self):
        self.kept.append(float(self.network.weight.detach()))
        return next(self.said, None)


def test_every_batch_once_in_order_however_often_it_is_called():
    training = Line()
    for until in (1, 1, 5, 99):
        training.fit(until)
    assert training.seen == list(range(12))
    assert (training.done, training.stopped, training.progress.step) == (True, "", 12)
    assert float(training.finish().weight.detach()) == pytest.approx(0.8**12)
    assert not training.network.training


def test_the_weights_of_the_lowest_loss_are_handed_on():
    training = Line([3.0, 1.0, 2.0, 1.0]).fit()
    assert (
        training.progress.best,
        training.progress.best_validation,
        training.progress.validation_losses,
    ) == (
        1.0,
        2,
        [3.0, 1.0, 2.0, 1.0],
    )
    assert float(training.finish().weight.detach()) == training.kept[1] != training.kept[3]


def test_patience_counts_looks_without_a_lower_loss():
    training = Line([3.0, 2.0, 2.5, 2.5, 1.0])
    training.patience = 2
    assert training.fit().stopped == "patience"
    assert training.progress.step == 12 and len(training.progress.validation_losses) == 4
    assert training.fit().progress.step == 12


def test_looks_between_the_ends_of_passes():
    training = Line([9.0] * 20)
    training.validate_every = 2
    assert (
        len(training.fit().progress.validation_losses) == 8
    )  # after 2, 3, 4, 6, 8, 9, 10 and 12 steps


def test_each_step_has_its_own_seed_wherever_it_begins():
    whole = Line()
    again = Line()
    whole.seed = again.seed = 5
    whole.fit()
    again.progress.step = 7
    torch.rand(3)
    again.fit()
    assert again.drawn == whole.drawn[7:]
    assert len(set(whole.drawn)) == 12
    assert len({mixed(seed, step) for seed in range(50) for step in range(-1, 50)}) == 50 * 51


@pytest.mark.parametrize(("limit", "weight"), [("clip_norm", 0.95), ("clip_value", 0.95)])
def test_gradients_are_cut(limit, weight):
    training = Line(scale=100.0)
    setattr(training, limit, 0.5)
    assert float(training.fit(1).network.weight.detach()) == pytest.approx(weight)


def test_a_loss_that_is_no_number_says_where():
    training = Line(scale=float("nan"))
    training.hint = "smaller"
    with pytest.raises(
        InputError, match=r"the loss is not finite at step 1 of 12, learning rate 0.1 \(smaller\)"
    ):
        training.fit()
    with pytest.raises(InputError, match="the validation loss is not finite at step 3 of 12"):
        Line([float("inf")]).fit()


def test_a_request_to_stop_is_heard_before_the_next_step(monkeypatch):
    training = Line().fit(2)
    asked = iter([None, KeyboardInterrupt])

    def check_interrupt():
        if (error := next(asked)) is not None:
            raise error

    monkeypatch.setattr("clinveil.core.fit.check_interrupt", check_interrupt)
    with pytest.raises(KeyboardInterrupt):
        training.fit()
    assert training.progress.step == 3
