"""Training: the same bits again and after a stop, masks, schedules, and losses that are no
number.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from lm_cases import (
    LSTM,
    PRETRAINED,
    VOCABULARY,
    changed,
    encoded_of,
    first_step_of,
    same,
    training_of,
)

from clinveil.core import InputError
from clinveil.lm import NeuralTask, encode, fit_of, plan_of, refuse_too_large, train_unigram
from clinveil.lm.train import memory_needed

torch = pytest.importorskip("torch", reason="the extra [neural] is not installed")
from clinveil.core import seeded  # noqa: E402
from clinveil.lm import NeuralModel  # noqa: E402
from clinveil.lm.training import load_training, save_training  # noqa: E402

ADAM = changed(optimizer="adamw", rate=1e-2, tied=False)
STREAM = changed(plan="stream", lanes=4, rate=10.0, epochs=5)
RECIPES = {
    "lstm-sgd": LSTM,
    "lstm-adamw": ADAM,
    "lstm-stream": STREAM,
    "lstm-stream-untied": changed(STREAM, tied=False),
    "pretrained": PRETRAINED,
}
every_recipe = pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)


def judge(network):
    return fit_of(NeuralModel(VOCABULARY, network), encoded_of(4, seed=8)).perplexity


def validating(recipe, **how):
    return training_of(recipe, validate=judge if recipe.plan == "stream" else None, **how)


@every_recipe
def test_the_same_seed_gives_the_same_bits_and_another_one_does_not(recipe):
    def one(seed):
        with seeded(0):
            training = validating(recipe, seed=seed)
            training.fit()
            return training.finish().state_dict(), training.progress

    (weights, progress), (again, progress_again), (other, _) = one(1), one(1), one(2)
    assert same(weights, again)
    assert progress == progress_again
    assert not same(weights, other)
    assert all(bool(torch.isfinite(part).all()) for part in weights.values())


@every_recipe
def test_stopped_anywhere_and_taken_up_again_is_never_stopped(recipe, tmp_path):
    with seeded(0):
        whole = validating(recipe)
        whole.fit()
        per_epoch = whole.plan.steps_per_epoch
        steps = whole.plan.steps
        for stop in sorted({1, per_epoch, steps - 1}):
            first = validating(recipe)
            first.fit(stop)
            save_training(first, tmp_path / f"{stop}.safetensors", "me")
            torch.rand(5)  # the generator may stand anywhere
            second = validating(recipe)
            load_training(second, tmp_path / f"{stop}.safetensors", "me")
            assert second.progress == first.progress
            second.fit()
            assert second.progress == whole.progress
            assert same(second.network.state_dict(), whole.network.state_dict())
            assert same(second.finish().state_dict(), finished(whole, recipe))


def finished(training, recipe):
    """The weights that `finish` would give, without changing the training."""
    return training.best if recipe.plan == "stream" else training.network.state_dict()


@pytest.mark.parametrize("recipe", [LSTM, ADAM, PRETRAINED], ids=["sgd", "adamw", "pretrained"])
def test_a_masked_note_changes_nothing_before_its_first_step_and_something_in_it(recipe):
    encoded = encoded_of(20)
    plan = plan_of(encoded, changed(recipe, epochs=1), 0)
    rows = np.array([max(range(20), key=lambda row: first_step_of(plan, np.array([row])))])
    first = first_step_of(plan, rows)
    assert first > 1
    with seeded(0):
        full, less = (
            training_of(recipe, encoded=encoded, plan=p) for p in (plan, plan.without(rows))
        )
        for until in range(1, first + 1):
            full.fit(until)
            less.fit(until)
            assert same(full.network.state_dict(), less.network.state_dict())
        full.fit(first + 1)
        less.fit(first + 1)
    assert not same(full.network.state_dict(), less.network.state_dict())


def test_the_loss_falls_and_the_order_of_words_is_learnt():
    text = "\n".join(["w0 w1 w2 w3 w4"] * 4)
    encoded = encode([text] * 8, VOCABULARY)
    for recipe in (
        changed(width=16, epochs=20, dropout=0.0),
        changed(PRETRAINED, epochs=20),
    ):
        with seeded(0):
            training = training_of(recipe, encoded=encoded)
            training.fit()
        found = fit_of(NeuralModel(VOCABULARY, training.finish()), encoded).perplexity
        assert found < 2
        assert found < fit_of(train_unigram(encoded, VOCABULARY), encoded).perplexity / 2
        assert training.progress.losses[-1] < training.progress.losses[0]


def test_the_loss_of_a_step_is_the_mean_over_its_tokens():
    """Without dropout the first epoch of one step is the mean loss of the first weights."""
    recipe = changed(dropout=0.0, window=40, lanes=4, epochs=1)
    encoded = encoded_of(4)
    with seeded(0):
        training = training_of(recipe, encoded=encoded)
        first = fit_of(NeuralModel(VOCABULARY, training.network), encoded)
        training.fit()
    assert training.plan.steps == 1
    assert training.progress.losses == [pytest.approx(math.log(first.perplexity), abs=1e-5)]


DIVERGED = r"the loss is not finite|the loss is \S+ nats per token|a weight is not finite"


@pytest.mark.parametrize(
    "recipe",
    [
        changed(ADAM, rate=1e30),
        changed(PRETRAINED, rate=1e30),
        changed(rate=1e30),
        changed(rate=1e38),
    ],
)
def test_a_loss_that_is_no_number_says_step_and_rate(recipe):
    with seeded(0):
        training = training_of(recipe)
        with pytest.raises(
            InputError, match=rf"({DIVERGED}) at step \d+ of \d+, learning rate \S+e\+\d+ \(pass a"
        ):
            training.fit()
    assert 0 < training.progress.step < 20


def rates(recipe, perplexities):
    """The learning rate of each epoch where validation says these perplexities."""
    said = iter(perplexities)
    seen = []
    with seeded(0):
        training = training_of(
            changed(recipe, epochs=len(perplexities)), validate=lambda network: next(said)
        )
        while not training.done:
            seen.append(training.rate_at(training.progress.step))
            training.fit(
                min(training.progress.step + training.plan.steps_per_epoch, training.plan.steps)
            )
    return seen, training


def test_the_annealed_rule_by_hand():
    """Paper C's code: a smaller rate unless perplexity is 0.1 below the best so far; never below
    0.1.
    """
    recipe = changed(STREAM, rate=20.0)
    perplexities = [100.0, 99.5, 99.45, 99.0, 105.0, 98.95, 98.5, 120.0, 119.0, 118.0]
    seen, training = rates(recipe, perplexities)
    # inf -> 100 gains; 0.5 gains; 0.05 does not; 0.45 gains; worse; 0.05; 0.45 gains; worse (0.3125
    # -> 0.1) and so on
    assert seen == [20.0, 20.0, 20.0, 5.0, 5.0, 1.25, 0.3125, 0.3125, 0.1, 0.1]
    assert training.progress.best == 98.5
    assert training.progress.best_validation == 7
    assert training.progress.validation_losses == perplexities
    assert len(training.progress.losses) == 10


@pytest.mark.parametrize("perplexity", [math.nan, math.inf])
def test_a_perplexity_that_is_no_number_ends_the_training(perplexity):
    recipe = changed(STREAM, rate=8.0)
    with pytest.raises(
        InputError, match=r"validation perplexity is not finite at step 22 of 44, learning rate 8 "
    ):
        rates(recipe, [50.0, perplexity, 40.0, 30.0])


def test_weights_that_the_last_step_broke_are_not_handed_on():
    with seeded(0):
        training = training_of()
        training.fit(training.plan.steps - 1)
        training.recipe = changed(rate=math.inf)
        with pytest.raises(InputError, match=r"a weight is not finite at step 33 of 33"):
            training.fit()


def test_the_weights_of_the_best_epoch_are_kept():
    recipe = changed(STREAM, epochs=3)
    kept = []
    said = iter([30.0, 20.0, 25.0])

    def validate(network):
        kept.append({name: part.clone() for name, part in network.state_dict().items()})
        return next(said)

    with seeded(0):
        training = training_of(recipe, validate=validate)
        training.fit()
        assert same(training.network.state_dict(), kept[2])
        assert same(training.finish().state_dict(), kept[1])
        assert not training.network.training


def test_the_papers_training_needs_validation():
    with seeded(0), pytest.raises(InputError, match="validation"):
        training_of(STREAM)


def test_the_fixed_schedule_rises_then_falls_to_a_tenth_whatever_validation_says():
    recipe = changed(epochs=60)
    with seeded(0):
        training = training_of(recipe, validate=lambda network: 1e9)
        steps = training.plan.steps
        seen = [training.rate_at(step) for step in range(steps)]
        training.fit(3 * training.plan.steps_per_epoch)
        assert [training.rate_at(step) for step in range(steps)] == seen
    warm = round(0.02 * steps)
    assert warm > 3
    assert np.diff(seen[:warm]) == pytest.approx(recipe.rate / warm)
    assert max(seen) == pytest.approx(recipe.rate)
    assert seen[warm - 1] == pytest.approx(recipe.rate)
    assert np.diff(seen[warm:]) == pytest.approx(-0.9 * recipe.rate / (steps - warm))
    assert 0.1 * recipe.rate < seen[-1] < 0.11 * recipe.rate
    assert training.best is None


@pytest.mark.parametrize(
    "recipe", [LSTM, changed(PRETRAINED, epochs=4)], ids=["lstm", "pretrained"]
)
def test_bfloat16_is_near_float32_and_keeps_float32_weights(recipe):
    try:
        with torch.autocast("cpu", torch.bfloat16):
            torch.nn.LSTM(8, 8)(torch.zeros(2, 1, 8))
    except RuntimeError:
        pytest.skip("this processor has no LSTM in bfloat16")
    with seeded(0):
        full = training_of(recipe)
        low = training_of(changed(recipe, precision="bfloat16"))
        full.fit()
        low.fit()
    assert all(part.dtype == torch.float32 for part in low.network.state_dict().values())
    assert low.progress.losses == pytest.approx(full.progress.losses, rel=0.02)
    assert low.progress.losses != full.progress.losses


def task(tmp_path, **how):
    given = {
        "encoded": encoded_of(),
        "vocabulary": VOCABULARY,
        "recipe": LSTM,
        "seed": 3,
        "state": tmp_path / "state",
    }
    return NeuralTask(**{**given, **how})


def test_a_task_that_was_cut_off_goes_on(tmp_path):
    model, went = task(tmp_path, state=None).run()
    said = []
    begun = task(tmp_path)
    with seeded(0):
        training = training_of(plan=plan_of(encoded_of(), LSTM, 3), seed=3)
        training.fit(5)
        save_training(training, tmp_path / "state", begun.identity)
    again, went_again = begun.run(said.append)
    assert said[0].startswith("resuming after step 5 of")
    assert said[-1].startswith("epoch 2 of 2: ")
    assert went == went_again
    assert same(model.network.state_dict(), again.network.state_dict())
    assert task(tmp_path).run(said.append)[1] == went  # done already: nothing is trained


def test_a_state_is_of_its_notes_validation_recipe_and_seed_alone(tmp_path):
    task(tmp_path).run()
    others = [{"seed": 4}, {"encoded": encoded_of(seed=5)}, {"recipe": changed(rate=4.0)}]
    others += [{"validation": encoded_of(3)}]
    for other in others:
        with pytest.raises(InputError, match="another training"):
            task(tmp_path, **other).run()


def test_what_does_not_fit_into_memory_is_refused_at_once():
    huge = changed(width=100_000)
    assert memory_needed(10**9, huge) > 10**14
    with pytest.raises(InputError, match=r"needs about .* GiB; .*lm.vocabulary=bytes"):
        refuse_too_large(10**9, huge, "cpu")
    refuse_too_large(100, LSTM, "cpu")
    refuse_too_large(10**9, huge, "cuda")
    assert memory_needed(100, changed(optimizer="adamw")) > memory_needed(100, LSTM)
