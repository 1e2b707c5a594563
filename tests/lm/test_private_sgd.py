"""Differentially private training: clipped gradients per patient, noise, Poisson samples,
accounting and refusals.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")
dp = pytest.importorskip("dp_accounting", reason="the extra [private] is not installed")
pld = pytest.importorskip("dp_accounting.pld")

from lm_cases import LSTM, VOCABULARY, changed, encoded_of, same, texts_of  # noqa: E402

from clinveil.core.errors import InputError, UsageError  # noqa: E402
from clinveil.core.keys import Key  # noqa: E402
from clinveil.core.neural import seeded  # noqa: E402
from clinveil.lm.model import fit_of  # noqa: E402
from clinveil.lm.network import weights_of  # noqa: E402
from clinveil.lm.notes import encode  # noqa: E402
from clinveil.lm.private.audit import guessed  # noqa: E402
from clinveil.lm.private.sgd import Noise, SgdPlan, epsilon_of_all  # noqa: E402
from clinveil.lm.private.training import (
    PatientPlan,
    PrivateTraining,
    Randomness,
    patient_batch,
)
from clinveil.lm.train import NeuralTask  # noqa: E402
from clinveil.lm.training import Training  # noqa: E402
from clinveil.lm.vocabulary import WordVocabulary  # noqa: E402

RECIPE = changed(LSTM, dropout=0.0, optimizer="adamw", rate=0.01, clip=0.5, window=8)
SGD = SgdPlan(40, 8.0, 1e-3, 10, 12, pretrained=False)


def patients_of(n=40):
    """The notes of each patient: one to three, of different lengths."""
    return [encode(texts_of(1 + i % 3, seed=i), VOCABULARY) for i in range(n)]


PATIENTS = patients_of()


def training_of(sgd=SGD, recipe=RECIPE):
    plan = PatientPlan(PATIENTS, sgd, Randomness(Key.from_seed(1), "q"), RECIPE.window)
    return PrivateTraining(VOCABULARY.size, recipe, plan, seed=1, device=torch.device("cpu"))


def by_hand(training, rows, step):
    """The sum of the clipped gradients of some patients, computed with autograd one by one."""
    total = None
    for row in rows:
        batch = patient_batch(PATIENTS[row], RECIPE.window, step)
        network = training.network
        network.zero_grad()
        hidden, _ = network(torch.from_numpy(batch.inputs), network.start(batch.inputs.shape[1]))
        logs = torch.log_softmax(network.scores(hidden), -1)
        chosen = logs.gather(-1, torch.from_numpy(batch.targets).long().unsqueeze(-1)).squeeze(-1)
        (-(chosen * torch.from_numpy(batch.weights)).sum() / batch.weights.sum()).backward()
        vector = torch.cat([weights.grad.flatten() for weights in training.trained])
        vector = vector * min(1.0, RECIPE.clip / float(vector.norm()))
        total = vector if total is None else total + vector
    return total


def gradient(training):
    return torch.cat([weights.grad.flatten() for weights in training.trained])


def test_a_step_is_the_clipped_sum_plus_noise_of_the_stated_variance():
    """10,000 draws of noise: mean 0, variance (sigma clip / batch)^2, normal."""
    with seeded(1):
        wide = changed(RECIPE, width=32)  # more weights, so fewer steps
        training = training_of(recipe=wide)
        rows = np.flatnonzero(training.plan.random.sample(40, SGD.noise.rate, 0))
        batch = training.plan.batch(0)
        draws = []
        expected = by_hand(training_of(recipe=wide), rows, 0) / SGD.batch
        deviation = SGD.noise.sigma * RECIPE.clip / SGD.batch
        while sum(map(len, draws)) < 10_000:
            training.plan = replace(
                training.plan, random=Randomness(Key.from_seed(1), f"draw {len(draws)}")
            )
            training.loss(batch)
            draws.append((gradient(training) - expected).double().numpy())
    noise = np.concatenate(draws)[:10_000]
    assert abs(noise.mean()) < 4 * deviation / 100
    assert abs(noise.var() / deviation**2 - 1) < 4 * np.sqrt(2 / 10_000)
    assert stats.kstest(noise / deviation, "norm").pvalue > 1e-3


def test_clipping_bounds_a_patient():
    """A patient with a hundred notes, or with large gradients, contributes a vector of norm at most
    the clip.
    """
    with seeded(1):
        training = training_of()
        for notes in (PATIENTS[0], encode(texts_of(100, seed=3), VOCABULARY)):
            sums, _ = training.clipped_sum([patient_batch(notes, RECIPE.window, 0)])
            assert float(torch.cat([one.flatten() for one in sums]).norm()) <= RECIPE.clip * (
                1 + 1e-5
            )


def poisson(samples, rate):
    """Whether sizes of samples, and steps from one use of a patient to the next, are those of
    independent draws.
    """
    steps, patients = samples.shape
    sizes = samples.sum(axis=1)
    variance = patients * rate * (1 - rate)
    gaps = np.concatenate(
        [np.diff(np.flatnonzero(samples[:, patient])) for patient in range(patients)]
    )
    return (
        abs(sizes.mean() - patients * rate) < 4 * np.sqrt(variance / steps)
        and abs(sizes.var() / variance - 1) < 4 * np.sqrt(2 / steps)
        and abs((gaps == 1).mean() - rate) < 4 * np.sqrt(rate / gaps.size)
        and abs((gaps > 2 / rate).mean() - (1 - rate) ** int(2 / rate))
        < 4 * np.sqrt(0.2 / gaps.size)
    )


def test_sampling_is_by_patient_and_independent():
    """Poisson samples, as the accounting assumes, and all notes of a patient together."""
    random = Randomness(Key.from_seed(2), "q")
    assert poisson(np.array([random.sample(200, 0.1, step) for step in range(2_000)]), 0.1)
    batches = training_of().plan.batch(0)
    assert len(batches) == int(random_of(0).sum()) and all(
        batch.normaliser > 0 for batch in batches
    )


def test_shuffling_is_caught():
    """Shuffled passes, and samples of constant size, are not what the accounting assumes."""
    rng = np.random.default_rng(1)
    passes = [rng.permutation(200).reshape(10, 20) for _ in range(200)]
    constant = [rng.permutation(200)[:20] for _ in range(2_000)]
    for chosen in (np.concatenate(passes), np.array(constant)):
        samples = np.zeros((2_000, 200), dtype=bool)
        np.put_along_axis(samples, chosen, values=True, axis=1)
        assert not poisson(samples, 0.1)


def random_of(step):
    return Randomness(Key.from_seed(1), "q").sample(40, SGD.noise.rate, step)


def test_an_empty_sample_adds_noise_only():
    with seeded(1):
        training = training_of()
        training.loss([])
        deviation = SGD.noise.sigma * RECIPE.clip / SGD.batch
        assert 0.9 < float(gradient(training).std()) / deviation < 1.1


@pytest.mark.parametrize(("patients", "epsilon"), [(1186, 1.0), (1186, 8.0), (10_000, 3.0)])
def test_epsilon_is_that_of_dp_accounting(patients, epsilon):
    plan = SgdPlan.of(patients, epsilon, None, None, None, pretrained=True)
    accountant = pld.PLDAccountant()
    step = dp.PoissonSampledDpEvent(plan.batch / patients, dp.GaussianDpEvent(plan.noise.sigma))
    accountant.compose(dp.SelfComposedDpEvent(step, plan.steps))
    direct = accountant.get_epsilon(plan.delta)
    assert epsilon_of_all([plan.noise], plan.delta) == pytest.approx(direct, abs=1e-6)
    assert epsilon - 0.01 < direct <= epsilon


def test_a_sampled_step_costs_less_than_a_full_one_and_releases_add_up():
    one = Noise(2.0, 0.1, 100)
    full = Noise(2.0, 1.0, 100)
    table = Noise(4.0, 1.0, 1)
    assert epsilon_of_all([one], 1e-5) < epsilon_of_all([full], 1e-5) / 3
    assert epsilon_of_all([one], 1e-5) < epsilon_of_all([one, table], 1e-5)


def test_hopeless_settings_are_refused():
    with pytest.raises(
        InputError,
        match=r"ratio of patients to noise \d+; it must be 100 or more .*lm\.model ngram",
    ):
        SgdPlan.of(1186, 3.0, None, None, None, pretrained=False).refuse_hopeless()
    SgdPlan.of(1186, 3.0, None, None, None, pretrained=True).refuse_hopeless()
    SgdPlan.of(10_000, 3.0, None, None, None, pretrained=False).refuse_hopeless()
    with pytest.raises(InputError, match="exceeds 1/patients"):
        SgdPlan.of(100, 3.0, 0.1, None, None, pretrained=False)
    with pytest.raises(UsageError, match="epsilon must be"):
        SgdPlan.of(100, 0.0, None, None, None, pretrained=False)


def task_of(state=None, key=1):
    plan = PatientPlan(PATIENTS, SGD, Randomness(Key.from_seed(key), "q"), RECIPE.window)
    return NeuralTask(encoded_of(), VOCABULARY, RECIPE, 1, state=state, private=plan)


def test_a_resumed_training_has_the_same_weights_and_another_key_other_ones(tmp_path):
    from clinveil.lm.training import save_training

    model, history = task_of().run()
    state = tmp_path / "state.safetensors"
    with seeded(1):
        stopped = task_of(state).training()
        assert isinstance(stopped, PrivateTraining) and stopped.steps == SGD.steps
        stopped.fit(5)
        save_training(stopped, state, task_of(state).identity)
    assert same(weights_of(task_of(state).run()[0].network), weights_of(model.network))
    assert not same(weights_of(task_of(key=2).run()[0].network), weights_of(model.network))
    assert len(history["losses"]) == 3


WORD = WordVocabulary([f"w{i}" for i in range(60)])
AUDITED = SgdPlan(30, 1.0, 1e-3, 15, 8, pretrained=False)


def audited(seed, *, noise=1.0, notes=1, by_note=False):
    """Train on canary patients, each with a word of their own; guess from the probabilities of the
    last network.

    noise: factor of the stated noise. by_note: each note of a canary is a patient of its own.
    """
    sgd = replace(AUDITED)
    included = np.random.default_rng(seed).random(60) < 0.5
    vars(sgd)["noise"] = Noise(AUDITED.noise.sigma * noise, *AUDITED.noise[1:])
    texts = [f"w{i} " * 4 for i in range(60)]
    units = [1] * notes if by_note else [notes]
    members = [
        encode([text] * unit, WORD)
        for text, member in zip(texts, included, strict=True)
        if member
        for unit in units
    ]
    recipe = changed(
        RECIPE, layers=1, width=2, optimizer="sgd", rate=2.0, clip=1.0, window=5, tied=False
    )
    plan = PatientPlan(members, sgd, Randomness(Key.from_seed(seed), "q"), recipe.window)
    model, _ = NeuralTask(encode(texts, WORD), WORD, recipe, seed, private=plan).run()
    return guessed(included, fit_of(model, encode(texts, WORD)).totals, sgd.delta, 0.5).epsilon


@pytest.mark.slow
def test_the_audited_bound_of_20_trainings_is_below_epsilon():
    bounds = [audited(seed) for seed in range(20)]
    assert max(bounds) <= AUDITED.epsilon, "20 of 20"


def test_noise_off_and_a_limit_per_note_are_caught_by_the_audit():
    assert audited(0, noise=0.0) > AUDITED.epsilon
    assert audited(0, notes=10, by_note=True) > AUDITED.epsilon
    assert audited(0, notes=10) <= AUDITED.epsilon


def test_without_noise_a_training_learns_and_noise_off_is_seen():
    """Positive control of the noise test: a plan without noise gives exactly the clipped sum."""
    silent = replace(SGD)
    vars(silent)["noise"] = Noise(0.0, SGD.noise.rate, SGD.steps)
    with seeded(1):
        training = training_of(silent)
        rows = np.flatnonzero(training.plan.random.sample(40, SGD.noise.rate, 0))
        training.loss(training.plan.batch(0))
        assert torch.allclose(
            gradient(training), by_hand(training_of(), rows, 0) / SGD.batch, atol=1e-6
        )
        assert isinstance(training, Training)
