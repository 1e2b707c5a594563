"""Noise mechanisms: the shape of the noise, the compiled rows against slow drawing, the stated error, calibration."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from clinveil.attacks.channel.inversion import inversion
from clinveil.channel.mechanism import Material
from clinveil.channel.mechanisms.gaussian import GaussianMechanism
from clinveil.channel.mechanisms.laplace import LaplaceMechanism
from clinveil.channel.noise import Rays, calibrate, cast_rays, monte_carlo_error, shared_draws, weighted_median
from clinveil.core.errors import InputError
from clinveil.vectors.table import Vectors

LAPLACE, GAUSSIAN = LaplaceMechanism(epsilon=1.0), GaussianMechanism(sigma=1.0)


def cloud(n=60, dim=5, seed=0, counts=True):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n, dim)).astype(np.float32)
    words = [f"{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(n)]
    return Vectors(words, matrix, np.arange(n, 0, -1, dtype=np.int64) if counts else None)


def compiled(mechanism, vectors, eligible=None, **how):
    mask = np.ones(len(vectors), dtype=bool) if eligible is None else eligible
    return mechanism.compile(Material(vectors, mask, **how))


def laplace_of(epsilon):
    return LaplaceMechanism(epsilon=epsilon)


def gaussian_of(sigma):
    return GaussianMechanism(sigma=sigma)


def unchanged(channel):
    return np.array([channel.matrix()[i, i] for i in range(len(channel.words))])


def test_laplace_has_a_gamma_radius_and_a_uniform_direction():
    noise = LAPLACE.noise(4.0, np.random.default_rng(0), 4_000, 6).astype(np.float64)
    radius = np.linalg.norm(noise, axis=1)
    assert scipy.stats.kstest(radius, scipy.stats.gamma(6, scale=0.25).cdf).pvalue > 0.01
    # Archimedes: a coordinate of a uniform direction in n dimensions has (1 + x)/2 ~ Beta((n - 1)/2, (n - 1)/2).
    direction = noise[:, 2] / radius
    assert scipy.stats.kstest((direction + 1) / 2, scipy.stats.beta(2.5, 2.5).cdf).pvalue > 0.01
    assert abs(scipy.stats.spearmanr(radius, direction).statistic) < 0.05


def test_laplace_in_one_dimension_is_the_laplace_distribution():
    noise = LAPLACE.noise(2.0, np.random.default_rng(1), 4_000, 1)[:, 0]
    assert scipy.stats.kstest(noise, scipy.stats.laplace(scale=0.5).cdf).pvalue > 0.01


def test_gaussian_is_normal_and_as_long_as_stated():
    noise = GAUSSIAN.noise(0.3, np.random.default_rng(0), 4_000, 3)
    assert scipy.stats.kstest(noise[:, 1] / 0.3, "norm").pvalue > 0.01
    assert GAUSSIAN.expected_length(0.3, 3) == pytest.approx(scipy.stats.chi(3).mean() * 0.3)
    assert np.linalg.norm(noise, axis=1).mean() == pytest.approx(GAUSSIAN.expected_length(0.3, 3), rel=0.02)


@pytest.mark.parametrize("mechanism", [laplace_of(8.0), gaussian_of(0.4)])
def test_rows_are_those_of_drawing_one_by_one(mechanism):
    vectors, eligible = cloud(12, 3, counts=False), np.arange(12) != 5
    channel = compiled(mechanism, vectors, eligible, draws=1_500)
    rng = np.random.default_rng(9)
    for row in (0, 5, 11):
        laplace = mechanism.name == "laplace"
        noise = LAPLACE.noise(8.0, rng, 1_500, 3) if laplace else GAUSSIAN.noise(0.4, rng, 1_500, 3)
        apart = np.linalg.norm((vectors.matrix[row] + noise)[:, None] - vectors.matrix, axis=2)
        apart[:, 5] = np.inf
        expected = np.bincount(apart.argmin(axis=1), minlength=12)
        outputs, chances = channel.row(row)
        drawn = np.zeros(12)
        drawn[outputs] = chances * 1_500
        seen = (drawn + expected) > 10
        assert scipy.stats.chi2_contingency(np.stack([drawn, expected])[:, seen]).pvalue > 1e-3
        assert 5 not in outputs


def test_two_words_on_a_line_by_the_laplace_distribution():
    """At distance d a word comes out as the other where the noise passes d/2: exp(-epsilon d / 2) / 2."""
    vectors = Vectors(["a", "b"], np.array([[0.0], [2.0]], np.float32))
    channel = compiled(laplace_of(1.5), vectors, draws=20_000)
    other = np.exp(-1.5) / 2
    assert channel.matrix()[0, 1] == pytest.approx(other, abs=4 * np.sqrt(other / 20_000))
    assert calibrate("laplace", cast_rays(vectors, np.ones(2, bool), np.random.default_rng(0)), 0.9) > 1.0


@pytest.mark.parametrize("mechanism", [laplace_of(5.0), gaussian_of(0.5)])
def test_threads_change_nothing_and_the_seed_does(mechanism):
    vectors = cloud(400, 4)
    one, four, other = (compiled(mechanism, vectors, seed=s, threads=t) for s, t in ((1, 1), (1, 4), (2, 1)))
    assert np.array_equal(one.indices, four.indices)
    assert np.array_equal(one.probabilities, four.probabilities)
    assert dict(one.parameters) == dict(four.parameters)
    assert not np.array_equal(one.probabilities, other.probabilities)


def test_pieces_longer_than_a_batch_change_nothing_of_the_law():
    vectors = cloud(3, 2)
    channel = compiled(gaussian_of(1.0), vectors, draws=9_000)
    other = compiled(gaussian_of(1.0), vectors, draws=9_000, seed=7)
    assert unchanged(channel) == pytest.approx(unchanged(other), abs=0.04)


def test_little_noise_leaves_words_and_much_noise_does_not():
    vectors = cloud(40, 3)
    still, lost = (compiled(gaussian_of(s), vectors) for s in (1e-4, 100.0))
    assert still.parameters["unchanged"] == 1.0 and still.parameters["mc_missing_mass"] == 0.0
    assert lost.parameters["unchanged"] < 0.2
    identity = next(f for f in inversion(still, vectors.counts) if f.measure == "attack.inversion")
    assert identity.value == pytest.approx(1.0)  # an attacker who knows the channel recovers all


def test_words_below_the_floor_never_stay():
    vectors, eligible = cloud(40, 3), np.arange(40) % 4 != 0
    channel = compiled(laplace_of(50.0), vectors, eligible)
    assert (unchanged(channel)[~eligible] == 0).all()
    assert (unchanged(channel)[eligible] > 0).any()
    assert eligible[channel.indices].all()


def test_the_stated_error_is_that_of_repetition():
    vectors = cloud(30, 3)
    said = [compiled(gaussian_of(0.4), vectors, draws=100, seed=s) for s in range(30)]
    spread = np.std([unchanged(c) for c in said], axis=0, ddof=1)
    stated = np.mean([c.parameters["mc_se_unchanged_mean"] for c in said])
    assert stated == pytest.approx(np.average(spread, weights=vectors.counts), rel=0.15)
    assert all(c.parameters["mc_se_unchanged_greatest"] >= spread.max() * 0.6 for c in said)


def test_the_missing_mass_is_what_a_longer_compile_finds():
    vectors = cloud(300, 8, counts=False)
    short, long = (compiled(laplace_of(4.0), vectors, draws=n, seed=n) for n in (100, 5_000))
    present = short.matrix().astype(bool)
    missing = 1 - long.matrix().multiply(present).sum(axis=1)[:-1].mean()
    assert short.parameters["mc_missing_mass"] == pytest.approx(missing, rel=0.1)
    assert missing > 0.15 > long.parameters["mc_missing_mass"]


def test_monte_carlo_error_by_hand():
    # Word 0: 8 of 10 draws stay, 2 are word 1. Word 1: 9 are word 0 and 1, which came once, is itself.
    rows = np.array([2, 2]), np.array([0, 1, 0, 1], np.int32), np.array([0.8, 0.2, 0.9, 0.1])
    said = monte_carlo_error(rows, np.array([10, 10]), np.array([3, 1]))
    assert said["unchanged"] == pytest.approx((3 * 0.8 + 0.1) / 4)
    assert said["mc_missing_mass"] == pytest.approx(0.1 / 4)
    p, q = 9 / 12, 2 / 12
    errors = [np.sqrt(p * (1 - p) / 10), np.sqrt(q * (1 - q) / 10)]
    assert said["mc_se_unchanged_mean"] == pytest.approx((3 * errors[0] + errors[1]) / 4)
    assert said["mc_se_unchanged_greatest"] == pytest.approx(max(errors))
    assert said["fewest_draws"] == 10


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=50), st.integers(100, 1000))
def test_draws_are_shared_out(counts, draws):
    counts = np.array(counts)
    shared = shared_draws(counts, counts.size, draws)
    assert shared.min() >= max(100, draws // 2) if counts.any() else (shared == draws).all()
    assert draws * counts.size - counts.size <= shared.sum() <= draws * counts.size
    assert (np.diff(shared[np.argsort(counts, kind="stable")]) >= 0).all()


def test_draws_by_hand():
    assert shared_draws(np.array([8, 1, 0]), 3, 300).tolist() == [150 + 360, 150 + 90, 150]
    assert shared_draws(None, 2, 300).tolist() == [300, 300]


def test_median_by_weight():
    values = np.array([3.0, 1.0, 2.0, np.inf])
    assert weighted_median(values, None) == 2.0
    assert weighted_median(values, np.array([10, 1, 1, 1])) == 3.0
    assert weighted_median(values, np.array([0, 0, 0, 1])) == 0.0
    assert weighted_median(np.zeros(0), None) == 0.0


def test_what_a_user_chooses_the_noise_by_is_stated():
    vectors = cloud(50, 4)
    said = compiled(laplace_of(2.0), vectors).parameters
    apart = np.linalg.norm(vectors.matrix[:, None] - vectors.matrix, axis=2)
    np.fill_diagonal(apart, np.inf)
    assert said["nearest_distance_words"] == pytest.approx(np.sort(apart.min(axis=1))[24], rel=1e-5)
    assert said["expected_radius"] == 2.0
    assert said["maps_to_itself"] is True and said["epsilon_guaranteed"] is False


@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_calibration_hits_the_wanted_share(share):
    vectors, eligible = cloud(300, 8), np.arange(300) % 20 != 3
    rng = np.random.default_rng(0)
    laplace = laplace_of(calibrate("laplace", cast_rays(vectors, eligible, rng), share))
    gaussian = gaussian_of(calibrate("gaussian", cast_rays(vectors, eligible, rng), share))
    for mechanism in (laplace, gaussian):
        assert compiled(mechanism, vectors, eligible).parameters["unchanged"] == pytest.approx(share, abs=0.03)


def test_escape_radii_by_hand():
    """On a line: 0 may go 1 to the right, half way to 2, and for ever to the left; 2 half way to 0 and to 10."""
    vectors = Vectors(["a", "b", "c"], np.array([[0.0], [2.0], [10.0]], np.float32), np.array([1, 0, 0]))
    radii = cast_rays(vectors, np.ones(3, bool), np.random.default_rng(0), tokens=20, rays=5).radii
    assert set(radii.ravel()) == {1.0, np.inf}
    middle = Vectors(vectors.words, vectors.matrix, np.array([0, 1, 0]))
    radii = cast_rays(middle, np.ones(3, bool), np.random.default_rng(0), tokens=20, rays=5).radii
    assert set(np.round(radii.ravel(), 9)) == {1.0, 4.0}
    floored = cast_rays(middle, np.array([True, False, True]), np.random.default_rng(0)).radii
    assert (floored == 0).all()


def test_of_words_at_one_place_the_lower_row_stays():
    vectors = Vectors(["a", "b", "c"], np.array([[1, 1], [1, 1], [4, 5]], np.float32), np.array([1, 1, 0]))
    radii = cast_rays(vectors, np.ones(3, bool), np.random.default_rng(0), tokens=50).radii
    assert 0 < (radii == 0).all(axis=1).mean() < 1
    channel = compiled(laplace_of(1.0), vectors)
    assert unchanged(channel)[0] > 0 and unchanged(channel)[1] == 0


def test_a_ray_s_chance_is_that_of_the_noise():
    rays = Rays(3, np.array([[0.5, 1.0], [2.0, np.inf]]))
    gamma, chi = scipy.stats.gamma(3, scale=1 / 4), scipy.stats.chi(3, scale=0.7)
    for mechanism, size, law in (("laplace", 4.0, gamma), ("gaussian", 0.7, chi)):
        expected = [(law.cdf(0.5) + law.cdf(1.0)) / 2, (law.cdf(2.0) + 1) / 2]
        assert rays.stay(mechanism, size) == pytest.approx(expected)
        share, error = rays.unchanged(mechanism, size)
        assert (share, error) == pytest.approx((np.mean(expected), np.std(expected, ddof=1) / np.sqrt(2)))
    assert rays.unchanged("laplace", calibrate("laplace", rays, 0.6))[0] == pytest.approx(0.6)
    assert rays.unchanged("gaussian", calibrate("gaussian", rays, 0.6))[0] == pytest.approx(0.6)


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, 0.97])
def test_a_share_out_of_reach_is_refused(share):
    vectors = cloud(20)
    rays = cast_rays(vectors, np.arange(20) != 0, np.random.default_rng(0))
    with pytest.raises(InputError, match="unchanged"):
        calibrate("laplace", rays, share)


@pytest.mark.parametrize("size", [0.0, -1.0, float("nan"), float("inf"), None])
@pytest.mark.parametrize("make", [laplace_of, gaussian_of])
def test_noise_must_have_a_size(make, size):
    with pytest.raises(ValueError, match=r"epsilon|sigma"):
        make(size)


@pytest.mark.parametrize("how", [{"draws": 99}, {"threads": 0}])
def test_noise_must_have_draws(how):
    with pytest.raises(ValueError, match="too few"):
        compiled(laplace_of(1.0), cloud(), **how)


def test_a_share_instead_of_a_size_is_calibrated():
    vectors = cloud(200, 6)
    said = compiled(LaplaceMechanism(unchanged=0.5), vectors).parameters
    assert said["unchanged"] == pytest.approx(0.5, abs=0.05)
    assert said["epsilon"] == calibrate(
        "laplace", cast_rays(vectors, np.ones(200, bool), np.random.default_rng(0)), 0.5
    )
