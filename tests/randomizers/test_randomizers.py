"""The built-in randomizers: exact privacy, exact samplers, unbiased decoders of the stated variance, and wrong twins that fail."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from local_dp.arrays import Floats, Ints, Words
from local_dp.conformance import channels as conformance
from local_dp.conformance import conform
from local_dp.errors import InputError, RefusedError
from local_dp.noise import Draw, KeyedNoise, Noise, public_coins, stream_key
from local_dp.oracles.local.asked import Cohort, LocalQuery, respond
from local_dp.oracles.local.sessions import Spoken
from local_dp.queries.tables import Question
from local_dp.randomizers import evidence as exact
from local_dp.randomizers.evidence import check_loss, exact_epsilon
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard, SignedHadamard
from local_dp.randomizers.numbers.discrete_laplace import DiscreteLaplace
from local_dp.randomizers.numbers.one_bit_mean import OneBitMean
from local_dp.randomizers.numbers.rounded_oracle import RoundedOracle
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Estimate, Tally
from local_dp.verification import common
from local_dp.verification.common import check_parameters, values_of
from tests.support.inputs.randomizers import (
    approximate,
    built_in,
    of_changes,
    of_coins_sent_along,
    of_compressed,
    of_densities,
    of_designs,
    of_more_private,
    of_named_parities,
    of_other_estimates,
    of_places,
    of_repeated,
    of_rounded,
    of_sets,
    of_vectors,
)
from tests.support.long import short

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
ALPHA = 1e-6  # failure probability of each statistical check


def _rounded_away(randomizer: FiniteChannel) -> float:
    """What whole weights of 32 bits may cost an oracle behind a rounded number: one weight of its least, and that is 2^32 / (A e^eps) or more."""
    return 2 * randomizer.inner.alphabet * math.exp(randomizer.epsilon) / 2**32 if isinstance(randomizer, RoundedOracle) else 0.0


@pytest.mark.parametrize("epsilon", short(EPSILONS, lambda epsilon: epsilon in (0.01, 1.0, 20.0)))
def test_every_built_in_randomizer_conforms(epsilon: float) -> None:
    """At each size and epsilon, every built-in is exactly as private as declared, samples its declared channel exactly and decodes it without bias."""
    for randomizer in built_in(epsilon):
        needs_wide_words = isinstance(randomizer, DiscreteLaplace) or (isinstance(randomizer, OneBitMean) and randomizer.steps > 1 << 12)
        conform(randomizer, exhaustive=not needs_wide_words)
    for randomizer in of_other_estimates(epsilon):
        conform(randomizer, symbols=False)
    for named in of_named_parities(epsilon):
        conform(named, runs=False, symbols=False)
    for plain in (*of_compressed(epsilon), *of_changes(epsilon), *of_sets(epsilon)):
        conform(plain)
    for repeated in of_repeated(epsilon):
        conform(repeated, slack=epsilon, runs=False)
    for rounded in of_rounded(epsilon):
        conform(rounded, slack=1e-6 + _rounded_away(rounded), runs=False)
    for private in of_more_private(epsilon):
        conform(private, slack=epsilon)
    for design in of_designs(epsilon):
        conform(design, exhaustive=epsilon >= 0.5 or design.uses_coins)  # many reports about as likely need more than the narrow words


def test_every_built_in_name_is_covered() -> None:
    """The suite leaves no built-in randomizer out."""
    settled = (
        built_in,
        of_other_estimates,
        of_named_parities,
        of_sets,
        of_designs,
        of_more_private,
        of_vectors,
        approximate,
        of_densities,
        of_compressed,
        of_repeated,
    )
    kinds = (*settled, of_changes, of_places, of_coins_sent_along, of_rounded)
    assert {randomizer.name for kind in kinds for randomizer in kind(1.0)} == set(RANDOMIZERS.built_in)


# --- statistics ------------------------------------------------------------------------------------------------------------------------------------------
#
# A report's estimate X has a finite law known exactly. Y = (X - mean)^2 lies in [0, B] and has mean s2 (the closed-form variance) and variance V = m4 - s2^2.
# Bernstein's inequality, valid for every sample size: Pr[|average of N copies of Y - s2| > t] <= 2 exp(-N t^2 / (2 V + 2 B t / 3)). With t = s2 / 20 and
# N = ln(2 / ALPHA) (2 V + 2 B t / 3) / t^2 clients, the empirical variance is off by more than 5 % with probability at most ALPHA = 1e-6.


def clients_for_variance(values: Floats, law: Floats) -> int:
    """N above: how many reports make the 5 % test of the variance fail with probability at most ALPHA."""
    squares = (values - law @ values) ** 2
    variance = float(law @ squares)
    t = variance / 20
    return math.ceil(math.log(2 / ALPHA) * (2 * float(law @ (squares - variance) ** 2) + 2 * float(abs(squares - variance).max()) * t / 3) / t**2)


def bernstein(variance: float, bound: float, n: int) -> float:
    """How far the average of n independent draws, each within `bound` of its mean, may be from it except with probability ALPHA."""
    part = bound * math.log(2 / ALPHA) / (3 * n)
    return part + math.sqrt(part**2 + 2 * variance * math.log(2 / ALPHA) / n)


def deviation(values: Floats, law: Floats, n: int) -> float:
    """`bernstein` for draws from a finite law."""
    mean = law @ values
    return bernstein(float(law @ (values - mean) ** 2), float(abs(values - mean).max()), n)


def check_statistics(randomizer: FiniteChannel, noise: Noise, honest: FiniteChannel | None = None) -> None:
    """Simulated clients with values drawn from a skewed law: mean within `deviation` of the truth, variance within 5 % of the closed form.

    The closed form is that of `honest`, the randomizer itself if not given. Raises AssertionError.
    """
    declared = honest or randomizer
    held = values_of(declared.domain)
    shares = 1.0 / np.arange(1, len(held) + 1)
    shares /= shares.sum()
    law = np.tensordot(shares, np.stack([conformance.law_of(declared, int(value)) for value in held]), 1)
    singles = conformance.single_estimates(declared)[:, :, 0]
    closed = declared.estimate(Tally(np.rint(law * 2.0**52).astype(np.int64)))
    mean, variance = float(np.atleast_1d(closed.value)[0]), float(np.atleast_1d(closed.standard_error)[0]) ** 2 * 2.0**52
    n = max(100_000, clients_for_variance(singles.ravel(), law.ravel()))
    values = np.random.default_rng(8).choice(held, n, p=shares)
    cells = randomizer.cells_of(public_coins(stream_key("coins", 7, 1), 0, n))
    reports = randomizer.respond(values, randomizer.draw(noise, Draw(1), 0, n), cells)
    drawn = conformance.single_estimates(randomizer)[:, :, 0][cells.astype(np.int64), reports.astype(np.int64)]
    assert abs(drawn.mean() - mean) <= deviation(singles.ravel(), law.ravel(), n), f"{randomizer.name}: mean {drawn.mean()} for {mean}"
    empirical = float(((drawn - mean) ** 2).mean())
    assert abs(empirical / variance - 1) <= 0.05, f"{randomizer.name}: variance {empirical} for {variance}"
    # neighbours' products have mean 0 and variance s2^2 when clients are independent
    products = ((drawn - mean)[: n // 2 * 2]).reshape(-1, 2).prod(axis=1)
    bound = bernstein(variance**2, float(abs(singles - mean).max()) ** 2, n // 2)
    assert abs(products.mean()) <= bound, f"{randomizer.name}: neighbouring clients are not independent"


@pytest.mark.parametrize("epsilon", short(EPSILONS, lambda epsilon: epsilon in (0.1, 1.0, 5.0)))
def test_simulated_mean_and_variance_match_the_closed_forms(epsilon: float) -> None:
    """Estimates from simulated clients are unbiased and their variance is within 5 % of the closed form."""
    for randomizer in built_in(epsilon):
        check_statistics(randomizer, KeyedNoise(11))


# --- wrong twins: each is nearly right, and each check must notice ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RoundedAway(BinaryRR):
    """The flip threshold rounded down: a hair more than epsilon."""

    def prepare(self) -> None:
        super().prepare()
        object.__setattr__(self, "_flip", self.flip - 1)


@dataclass(frozen=True)
class Doubled(GRR):
    """Spends twice the declared epsilon."""

    @property
    def other(self) -> int:
        return GRR(2 * self.epsilon, word_bits=self.word_bits, k=self.k).other


@dataclass(frozen=True)
class Halved(BinaryRR):
    """Wastes half of its epsilon."""

    def prepare(self) -> None:
        object.__setattr__(self, "_flip", BinaryRR(self.epsilon / 2, word_bits=self.word_bits).flip)


@dataclass(frozen=True)
class NotDebiased(BinaryRR):
    """Reports the share of ones as it came."""

    def estimate(self, tally: Tally) -> Estimate:
        share = float(tally.counts[0, 1]) / tally.n
        return Estimate(np.asarray(share), np.asarray(math.sqrt(share * (1 - share) / tally.n)), tally.n)


@dataclass(frozen=True)
class Overconfident(Hadamard):
    """A standard error without the sampling noise of the symbol."""

    def estimate(self, tally: Tally) -> Estimate:
        estimate = super().estimate(tally)
        return replace(estimate, standard_error=np.sqrt((self.gain**2 - 1) / estimate.n) + 0 * estimate.value)


@dataclass(frozen=True)
class OffByOne(BinaryRR):
    """Flips at the threshold too."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return self.encode(values, cells) ^ (words <= words.dtype.type(self.flip)).view(np.uint8)


@dataclass(frozen=True)
class OffByOneSymbol(GRR):
    """Never sends the last of the other symbols."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        reports: Words = np.where(words < self.other, values + 1, values) % self.k
        return reports.astype(self.report_dtype)


@dataclass(frozen=True)
class SharedCoin(BinaryRR):
    """Neighbouring clients use one coin."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return super().respond(values, np.repeat(words[::2], 2)[: len(words)], cells)


@dataclass(frozen=True)
class Miscounting(Hadamard):
    """Forgets the cell."""

    def tally(self, reports: Words, cells: Words) -> Tally:
        return super().tally(reports, np.zeros_like(cells))


@dataclass(frozen=True)
class WrongLog(GRR):
    """A density in bits."""

    def log_probability(self, reports: Ints, values: Ints, cells: Ints) -> Floats:
        return super().log_probability(reports, values, cells) / math.log(2)


@dataclass(frozen=True)
class Leaky(GRR):
    """Weights that do not sum to 2^word_bits."""

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        return super().weight(reports, values, cells) + np.uint64(1)


@dataclass(frozen=True)
class Forgetful(GRR):
    """params() leaves k out."""

    def params(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}


@pytest.mark.parametrize(
    ("twin", "check"),
    [
        (RoundedAway(1.0), lambda twin: common.check_loss(twin, 1e-6)),
        (Doubled(1.0, k=8), lambda twin: common.check_loss(twin, 1e-6)),
        (Halved(1.0), lambda twin: common.check_loss(twin, 1e-6)),
        (NotDebiased(1.0), conformance.check_estimate),
        (Overconfident(1.0, k=8), conformance.check_estimate),
        (OffByOne(1.0), conformance.check_boundaries),
        (OffByOne(1.0), lambda twin: conformance.check_every_word(conformance.narrow(twin))),
        (OffByOneSymbol(1.0, k=8), conformance.check_boundaries),
        (OffByOneSymbol(1.0, k=8), lambda twin: conformance.check_every_word(conformance.narrow(twin))),
        (SharedCoin(1.0), conformance.check_elementwise),
        (Miscounting(1.0, k=8), conformance.check_tally),
        (WrongLog(1.0, k=8), conformance.check_log_probability),
        (Leaky(1.0, k=8), conformance.check_channel),
        (Forgetful(1.0, k=8), check_parameters),
    ],
)
def test_wrong_twins_fail_the_check_made_for_them(twin: FiniteChannel, check: Callable[[FiniteChannel], None]) -> None:
    """Each conformance check notices a randomizer that is wrong in its way, and the whole suite refuses it."""
    with pytest.raises(AssertionError):
        check(twin)
    with pytest.raises((AssertionError, RefusedError)):
        conform(twin)


@dataclass(frozen=True)
class RepeatedNoise:
    """Clients 2i and 2i + 1 share their word."""

    noise: Noise

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        return np.repeat(self.noise.words(which, start // 2, (stop + 1) // 2, bits), 2)[: stop - start]


@pytest.mark.parametrize(("twin", "honest"), [(Doubled(1.0, k=8), GRR(1.0, k=8)), (NotDebiased(1.0), BinaryRR(1.0)), (OffByOneSymbol(1.0, k=8), GRR(1.0, k=8))])
def test_wrong_twins_fail_the_statistics(twin: FiniteChannel, honest: FiniteChannel) -> None:
    """A doubled epsilon, a missing debiasing and a wrong sampler show in simulation beside the honest closed forms."""
    check_statistics(honest, KeyedNoise(11))
    with pytest.raises(AssertionError):
        check_statistics(twin, KeyedNoise(11), honest)


@pytest.mark.parametrize("randomizer", [BinaryRR(1.0), GRR(0.5, k=3), Hadamard(1.0, k=8)])
def test_correlated_coins_fail_the_statistics(randomizer: FiniteChannel) -> None:
    """Noise that two clients share keeps each mean and variance, and is noticed in the products of neighbours."""
    with pytest.raises(AssertionError, match="independent"):
        check_statistics(randomizer, RepeatedNoise(KeyedNoise(11)))


# --- particular claims -----------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("steps", [1, 2, 7, 63])
def test_discrete_laplace_is_unbiased_and_beats_unclamped_noise_everywhere(epsilon: float, steps: int) -> None:
    """At every lattice point, clamped discrete Laplace is unbiased and varies less than unclamped noise, 2a / (1 - a)^2 / steps^2."""
    randomizer = DiscreteLaplace(epsilon, steps=steps)
    a = math.exp(-epsilon / steps)
    for value in range(steps + 1):
        law = conformance.law_of(randomizer, value)[0]
        mean = float(law @ randomizer.decoded)
        assert abs(mean - value / steps) < 1e-9
        assert float(law @ (randomizer.decoded - value / steps) ** 2) < 2 * a / (1 - a) ** 2 / steps**2 * (1 + 1e-6)


@pytest.mark.parametrize("bits", [8, 12, 20])
def test_narrow_words_still_randomize(bits: int) -> None:
    """A randomizer named with narrow words flips as often as its thresholds say when a client answers from full-width noise."""
    n = 200_000
    randomizer = BinaryRR(1.0, word_bits=bits)
    query = LocalQuery(Question("yes == 1"), randomizer, Cohort(0, n))
    reports = respond(query, Records({"yes": np.ones(n, dtype=np.uint8)}), 0, KeyedNoise(3), Draw(1), b"\0" * 16, Spoken(), 0)
    kept = 1 - randomizer.weight(np.array(0), np.array(1), np.array(0)) / randomizer.total
    assert abs(reports.mean() - kept) <= deviation(np.array([0.0, 1.0]), np.array([1 - kept, kept]), n)


@pytest.mark.parametrize("make", [lambda: BinaryRR(0.01, word_bits=4), lambda: GRR(0.01, word_bits=8, k=64), lambda: OneBitMean(0.01, word_bits=8)])
def test_words_too_narrow_to_tell_values_apart_are_refused(make: Callable[[], FiniteChannel]) -> None:
    """A randomizer whose rounded thresholds carry no information says so instead of dividing by zero later."""
    with pytest.raises(InputError, match="too narrow"):
        make()


def test_exact_epsilon_refuses_what_it_cannot_verify() -> None:
    """A channel that does not sum to one, exceeds its claim, or gives a report to one value only is unverifiable."""
    with pytest.raises(RefusedError, match="do not sum"):
        exact_epsilon(Leaky(1.0, k=8))
    with pytest.raises(RefusedError, match="claims epsilon 1 but its channel has 2"):
        check_loss(Doubled(1.0, k=8))
    with pytest.raises(RefusedError, match="claims epsilon"):
        check_loss(RoundedAway(1.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "MAX_ENTRIES", 1000)
        with pytest.raises(RefusedError, match="too large"):
            exact_epsilon(SignedHadamard(1.0, k=64))
    check_loss(GRR(1.0, k=4096))


def test_the_registry_builds_by_name_and_refuses_the_rest() -> None:
    """Names and parameters make a randomizer; unknown names, unknown parameters and bad values are refused with a code."""
    assert RANDOMIZERS.build("grr", {"epsilon": 1.0, "k": 4}) == GRR(1.0, k=4)
    for name, params, code in [
        ("eval", {"epsilon": 1.0}, "unknown-randomizer"),
        ("grr", {"epsilon": 1.0, "k": 1}, "bad-parameters"),
        ("grr", {"epsilon": math.nan}, "bad-parameters"),
        ("grr", {"epsilon": 1.0, "code": "x"}, "bad-parameters"),
        ("binary-rr", {}, "bad-parameters"),
    ]:
        with pytest.raises(RefusedError) as refused:
            RANDOMIZERS.build(name, params)  # type: ignore[arg-type]
        assert refused.value.code == code
        assert "\n" not in str(refused.value)


def test_what_nobody_says_is_subtracted() -> None:
    """When half of the clients hold nothing and send a public coin, subtracting it gives exactly the variance that is claimed: C^2 - 1/4 - m^2 a report."""
    randomizer, nothing = SignedHadamard(1.0, k=4), 0.5
    law = nothing * conformance.law_of(randomizer, 0) + (1 - nothing) / 4 * sum(conformance.law_of(randomizer, symbol) for symbol in (1, 2, 3, -4))
    singles = np.zeros((*law.shape, 4))
    for place in np.ndindex(law.shape):
        counts = np.zeros(law.shape, dtype=np.int64)
        counts[place] = 1
        singles[place] = randomizer.estimate(Tally(counts), nothing).value
    mean = np.einsum("cw,cwp->p", law, singles)
    exact = np.einsum("cw,cwp->p", law, (singles - mean) ** 2)
    claimed = randomizer.estimate(Tally(np.rint(law * 2.0**52).astype(np.int64)), nothing).standard_error ** 2 * 2.0**52
    np.testing.assert_allclose(mean, np.array([1, 1, 1, -1]) / 8, atol=1e-9)
    np.testing.assert_allclose(exact, claimed, rtol=1e-6)
    np.testing.assert_allclose(exact, randomizer.gain**2 - nothing**2 - 1 / 64, rtol=1e-6)
