"""For every randomizer the closed-form variance of what one report stands for, whatever law the
clients' values have, and laws among which the worst is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.bounds.frequencies import (
    blocked_hadamard_variance,
    hashing_variance,
    oue_variance,
    parities_variance,
    sketch_variance,
    subset_variance,
    sue_variance,
    thresholded_variance,
)
from local_dp.bounds.longitudinal import (
    bit_flip_variance,
    event_odds,
    events_variance,
    rappor_variance,
)
from local_dp.bounds.masked_parity import blocks_variance
from local_dp.bounds.means import (
    best_privunit,
    bounded_laplace_variances,
    discrete_laplace_variances,
    random_coordinate_variance,
)
from local_dp.bounds.response import response_gain
from local_dp.domains import Vectors
from local_dp.randomizers.frequencies.unary import STEPS, best_threshold
from local_dp.randomizers.numbers.noise import folded_variance
from local_dp.randomizers.numbers.window import window_variance
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.repeated.memoised import memoised_variance
from local_dp.randomizers.sets.padding_sampling import (
    Padded,
    padded_variance,
    pckv_ue_variances,
    pckv_variances,
)
from local_dp.randomizers.signs.prefix_signs import excess
from local_dp.randomizers.table import TableChannel
from local_dp.randomizers.vectors.coordinates import largest_normal, nearest_variance
from tests.support.theory.parity_forms import denied, deny, named, parities, suspects

Form: TypeAlias = Callable[
    [Any, Ints, Floats], Floats
]  # randomizer, the values and how likely each is -> n times the variance of each estimate
ODDS = np.arange(1, 20) / 20


def law_itself(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """The shares of symbols."""
    return law


def mean_number(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """Of numbers on a lattice, in [0, 1]."""
    return np.array([law @ values / randomizer.steps])


def by_its_table(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """Of a law that brings no estimate of its own: the variance of what a report stands for."""
    reports = law @ (randomizer.weights / randomizer.total)[values]
    return np.asarray(reports @ randomizer.stands**2 - (reports @ randomizer.stands) ** 2)


def ones(randomizer: Any, values: Ints, law: Floats) -> Floats:
    return law[1:]


def lead_of_ones(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """The share of ones less that of zeros, where 2 is nothing."""
    return np.array([law @ ((values == 1).astype(np.float64) - (values == 0))])


def mean_vector(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """Of rows on a lattice, in [-1, 1]."""
    return np.asarray(law @ values / randomizer.steps)


def ends(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """The shares of (group, lower end), (group, upper end), ..., none."""
    shares = np.zeros(randomizer.shares)
    group, level = np.divmod(values, randomizer.steps + 1)
    np.add.at(shares, 2 * group, law * (1 - level / randomizer.steps))
    upper = 2 * group < randomizer.shares - 1
    np.add.at(shares, (2 * group + 1)[upper], (law * level / randomizer.steps)[upper])
    return shares


def sign_means(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """E[sign 1(symbol = j)]."""
    symbols = np.arange(1, randomizer.k + 1)
    return np.asarray(law @ (np.sign(values)[:, None] * (np.abs(values)[:, None] == symbols)))


def prefix_sums(randomizer: Any, values: Ints, law: Floats) -> Floats:
    return np.cumsum(law)


def correlations(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """G f, G the mean of the rows' squares."""
    table = randomizer.table.astype(np.float64)
    return np.asarray(table.T @ (table @ law) / len(table))


def holders(randomizer: Any, values: Ints, law: Floats) -> Floats:
    return np.asarray(law @ randomizer.held[values])


def keys(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """The share that holds each key, then the sum of its numbers."""
    digits = (
        values[:, None]
        // (randomizer.steps + 2) ** np.arange(randomizer.k)
        % (randomizer.steps + 2)
    )
    numbers = 2 * (digits - 1) / randomizer.steps - 1
    return np.concatenate([law @ (digits > 0), law @ np.where(digits > 0, numbers, 0.0)])


def of_share(variance: Callable[[Any, float], float], shares: Form = law_itself) -> Form:
    """Where the variance of an estimate of a share follows from the share."""
    return lambda randomizer, values, law: np.array(
        [variance(randomizer, share) for share in shares(randomizer, values, law).tolist()]
    )


def of_values(spreads: Callable[[Any], Floats], means: Callable[[Any], Floats]) -> Form:
    """Where the variance given the value is known at every value, with what the values themselves
    add: both of shape (values,) or (values, m)."""

    def variances(randomizer: Any, values: Ints, law: Floats) -> Floats:
        meant = means(randomizer)[values]
        return np.atleast_1d(law @ (spreads(randomizer)[values] + meant**2) - (law @ meant) ** 2)

    return variances


def of_number(spreads: Callable[[Any], Floats]) -> Form:
    """Of a number on a lattice, in units of [0, 1]."""
    return of_values(spreads, lambda randomizer: np.arange(randomizer.steps + 1) / randomizer.steps)


def windowed(randomizer: Any) -> Floats:
    """`window_variance` at every lattice point."""
    places = np.arange(randomizer.steps + 1) / randomizer.steps
    return np.array(
        [
            window_variance(np.exp(randomizer.epsilon), randomizer.steps, randomizer.window, x)
            for x in places
        ]
    )


def hybrid(randomizer: Any) -> Floats:
    """A window or one bit, as often as the mix says."""
    mix, steps, places = (
        randomizer.mix,
        randomizer.steps,
        np.arange(randomizer.steps + 1) / randomizer.steps,
    )
    bits: Floats = (response_gain(randomizer.epsilon) ** 2 - (2 * places - 1) ** 2) / 4
    windows = np.array(
        [
            window_variance(float(np.exp(randomizer.epsilon)), steps, mix.window, x)
            for x in places.tolist()
        ]
    )
    return np.asarray(mix.share * windows + (1 - mix.share) * bits)


def gaussian(randomizer: Any) -> Floats:
    """Noise of the same variance everywhere."""
    return np.full(randomizer.steps + 1, float(randomizer.spread) / randomizer.steps**2)


def staircase(randomizer: Any) -> Floats:
    return folded_variance(np.exp(randomizer.epsilon), randomizer.steps, randomizer.stair)


NUMBERS: dict[str, Callable[[Any], Floats]] = {
    "discrete-laplace": lambda randomizer: discrete_laplace_variances(
        randomizer.epsilon, randomizer.steps
    ),
    "bounded-laplace": lambda randomizer: bounded_laplace_variances(
        randomizer.epsilon, randomizer.steps
    ),
    "discrete-gaussian": gaussian,
    "staircase": staircase,
    "hybrid": hybrid,
    **dict.fromkeys(("piecewise", "square-wave"), windowed),
}


def blocked(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """By the share of a symbol and that of its block."""
    blocks = randomizer.layout.place(np.arange(randomizer.k))[0]
    held = np.bincount(blocks, weights=law, minlength=randomizer.layout.blocks)[blocks]
    pairs = zip(law.tolist(), held.tolist(), strict=True)
    return np.array(
        [
            blocked_hadamard_variance(randomizer.epsilon, randomizer.layout.blocks, *pair)
            for pair in pairs
        ]
    )


def hashed(randomizer: Any, share: float) -> float:
    """By linear hashes, or by k-ary response where one hash separates all symbols."""
    if randomizer.hash.m == 1:
        return subset_variance(randomizer.epsilon, randomizer.k, 1, share)
    return hashing_variance(randomizer.epsilon, randomizer.hash.g, randomizer.hash.m, share)


def signed_blocks(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """`blocks_variance` by the share that is in the block, less what is known of the mean."""
    k, size = randomizer.k, randomizer.size
    held = np.bincount(
        (np.abs(values) - 1)[values != 0] // size,
        weights=law[values != 0],
        minlength=randomizer.blocks,
    )
    each = [
        blocks_variance(randomizer.epsilon, k, size, float(held[symbol // size]) / min(size, k))
        for symbol in range(k)
    ]
    return np.array(each) - sign_means(randomizer, values, law) ** 2


def events(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """Of each interval, a bit by itself; of never, all of them together."""
    odds, many = event_odds(randomizer.epsilon, randomizer.intervals), randomizer.intervals
    return np.array(
        [
            *(events_variance(odds, 1, share) for share in law[:-1].tolist()),
            events_variance(odds, many, float(1 - law[-1])),
        ]
    )


def keyed(each: Callable[[Any, float, float], tuple[float, float]]) -> Form:
    """Of each key's share and sum."""

    def variances(randomizer: Any, values: Ints, law: Floats) -> Floats:
        pairs = keys(randomizer, values, law).reshape(2, -1).T
        return np.array([each(randomizer, *pair) for pair in pairs.tolist()]).T.ravel()

    return variances


def of_vector(
    moment: Callable[[Any, Floats], float], weight: Callable[[Any], float] = lambda randomizer: 1.0
) -> Form:
    """Of all coordinates together: E||estimate||^2 at each vector, less `weight` times the squared
    norm of the mean."""

    def variances(randomizer: Any, values: Ints, law: Floats) -> Floats:
        moments = [moment(randomizer, row) for row in values / randomizer.steps]
        return np.array(
            [law @ moments - weight(randomizer) * (mean_vector(randomizer, values, law) ** 2).sum()]
        )

    return variances


def nearest(randomizer: Any, row: Floats) -> float:
    """`nearest_variance` of a unit vector; at 0 no direction is nearest, and the first stands for
    it."""
    growth, count, d = float(np.exp(randomizer.epsilon)), randomizer.chosen, randomizer.d
    if row.any():
        return nearest_variance(growth, count, d) + 1
    return float(
        d
        * (1 - 1 / count)
        * ((growth + count - 1) / ((growth - 1) * largest_normal(count)[0])) ** 2
    )


def told(randomizer: Any) -> int:
    return getattr(randomizer, "chosen", 1)


def coordinates(randomizer: Any, row: Floats) -> float:
    """d times that of a coordinate that is 0, d / (b m^2), m = (E - 1) / (E + 2^b - 1)."""
    growth, count = float(np.exp(randomizer.epsilon)), told(randomizer)
    if count == 1:
        return float(randomizer.d) * random_coordinate_variance(randomizer.epsilon, randomizer.d)
    return float(randomizer.d**2 / count * ((growth + (1 << count) - 1) / (growth - 1)) ** 2)


def one_bit(means: Form) -> Form:
    """C^2 - m^2, for a report stands for C or -C."""
    return lambda randomizer, values, law: np.asarray(
        response_gain(randomizer.epsilon) ** 2 - means(randomizer, values, law) ** 2
    )


def of_unit(means: Form) -> Form:
    """The same of a mean in [0, 1]: (C^2 - (2 m - 1)^2) / 4."""
    return lambda randomizer, values, law: (
        np.asarray(
            response_gain(randomizer.epsilon) ** 2 - (2 * means(randomizer, values, law) - 1) ** 2
        )
        / 4
    )


def characters(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """M (C^2 - m^2) for each of M masks: one client in M draws it."""
    return len(randomizer.listed) * one_bit(parities)(randomizer, values, law)


def prefixes(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """C^2 v - (F - 1/2)^2; the last one is certain."""
    certain = np.arange(randomizer.k) == randomizer.k - 1
    return np.where(
        certain,
        0.0,
        response_gain(randomizer.epsilon) ** 2 * excess(randomizer.size)
        - (np.cumsum(law) - 0.5) ** 2,
    )


VECTORS = ("random-coordinate", "sampled-signs", "nearest-direction", "privunit", "projunit")
FORMS: dict[str, Form] = {
    **{name: of_number(spreads) for name, spreads in NUMBERS.items()},
    "one-bit-mean": of_unit(mean_number),
    "binary-rr": of_unit(ones),
    "grr": of_share(lambda r, share: subset_variance(r.epsilon, r.k, 1, share)),
    **dict.fromkeys(("hadamard", "with-coin"), one_bit(law_itself)),
    "signed-hadamard": one_bit(sign_means),
    "signed-blocks": signed_blocks,
    "one-of-rounds": one_bit(lead_of_ones),
    "rounded-grr": of_share(lambda r, share: subset_variance(r.epsilon, r.shares, 1, share), ends),
    "rounded-hadamard": one_bit(ends),
    "rounded-oracle": of_share(
        lambda r, share: subset_variance(r.epsilon, r.inner.sets[0], r.inner.sets[1], share), ends
    ),
    "wide-hashing": of_share(lambda r, share: parities_variance(r.epsilon, r.parities, share)),
    "characters": characters,
    "deny": deny,
    "suspects": suspects,
    "prefix-signs": prefixes,
    "sign-rows": one_bit(correlations),
    "sue": of_share(lambda r, share: sue_variance(r.epsilon, share)),
    "oue": of_share(lambda r, share: oue_variance(r.epsilon, share)),
    "the": of_share(
        lambda r, share: thresholded_variance(r.epsilon, best_threshold(r.nano) / STEPS, share)
    ),
    **dict.fromkeys(
        ("subset-selection", "affine-sets"),
        of_share(lambda r, share: subset_variance(r.epsilon, r.inner.k, r.inner.w, share)),
    ),
    "count-mean-sketch": of_share(
        lambda r, share: sketch_variance(r.epsilon, r.hash.g, r.hash.points, share)
    ),
    **dict.fromkeys(("olh", "blh", "pi-rappor"), of_share(hashed)),
    "pgr": of_share(lambda r, share: subset_variance(r.epsilon, r.alphabet, r.w, share)),
    **dict.fromkeys(("hadamard-response", "recursive-hadamard"), blocked),
    "memoised-grr": of_share(lambda r, share: memoised_variance(r.odds, share)),
    "memoised-rappor": of_share(lambda r, share: rappor_variance(r.odds, share)),
    "loloha": of_share(
        lambda r, share: hashing_variance(r.first * r.epsilon / r.hash.g, r.hash.g, r.hash.m, share)
    ),
    "d-bit-flip": of_share(lambda r, share: bit_flip_variance(r.epsilon, r.k, r.d, share)),
    "change-tracking": events,
    "padding-sampling": of_share(
        lambda r, share: padded_variance(r.epsilon, r.k, r.limit, share), holders
    ),
    "pckv": keyed(lambda r, share, total: pckv_variances(r.epsilon, r.k, r.limit, share, total)),
    **dict.fromkeys(
        ("random-coordinate", "sampled-signs"), of_vector(coordinates, lambda r: r.d / told(r))
    ),
    "nearest-direction": of_vector(nearest),
    **dict.fromkeys(
        ("privunit", "projunit"), of_vector(lambda r, row: best_privunit(r.epsilon, r.d)[1] + 1)
    ),
    "she": of_share(
        lambda r, share: float(1 / (2 * np.sinh(r.epsilon / 4) ** 2) + share * (1 - share))
    ),
    "pckv-ue": keyed(lambda r, share, total: pckv_ue_variances(r.epsilon, r.limit, share, total)),
}

BY_TABLE = (
    dict.fromkeys(  # why there is no formula: the variance is that of the channel's own table
        ("seeded-rejection", "genprot"),
        "the public samples are drawn once for all, and what they are decides the table",
    )
    | {"purified": "the rows are clipped ones of another channel"}
)
FORMS |= dict.fromkeys(
    BY_TABLE, of_values(lambda r: np.asarray(r.variances), lambda r: np.eye(r.domain.size))
)

AIMS: dict[str, Form] = {  # what estimates are of, where it is not the law
    **dict.fromkeys((*NUMBERS, "one-bit-mean"), mean_number),
    **dict.fromkeys(("rounded-grr", "rounded-hadamard", "rounded-oracle"), ends),
    **dict.fromkeys(("signed-hadamard", "signed-blocks"), sign_means),
    **dict.fromkeys(VECTORS, mean_vector),
    **dict.fromkeys(("pckv", "pckv-ue"), keys),
    "binary-rr": ones,
    "one-of-rounds": lead_of_ones,
    "padding-sampling": holders,
    "characters": parities,
    "deny": denied,
    "suspects": named,
    "prefix-signs": prefix_sums,
    "sign-rows": correlations,
}

SETTINGS: dict[str, dict[str, Any]] = {
    **{
        key: {"k": 5}
        for key in (
            "hadamard",
            "grr",
            "prefix-signs",
            "sign-rows",
            "sue",
            "oue",
            "she",
            "the",
            "memoised-grr",
            "memoised-rappor",
            "loloha",
        )
    },
    **{key: {"k": 7} for key in ("blh", "pgr", "hadamard-response")},
    **{key: {"k": 13} for key in ("olh", "pi-rappor", "subset-selection")},
    "recursive-hadamard": {"k": 5, "b": 2},
    "affine-sets": {"k": 10},
    "count-mean-sketch": {"k": 6, "m": 3},
    "signed-hadamard": {"k": 3},
    "signed-blocks": {"k": 3, "size": 2},
    "wide-hashing": {"length": 3},
    "d-bit-flip": {"k": 5, "d": 2},
    "change-tracking": {"intervals": 4},
    **{key: {"d": 2} for key in ("characters", "deny")},
    "suspects": {"d": 3, "masks": "b5", "word_bits": 64},  # 32 bits leave remainders of 1e-9
    "one-bit-mean": {"steps": 7},
    **{key: {"groups": 2, "steps": 3} for key in ("rounded-grr", "rounded-hadamard")},
    "rounded-oracle": {"groups": 2, "steps": 4},
    **{key: {"steps": 12} for key in NUMBERS},
    "padding-sampling": {"k": 3, "limit": 2},
    "pckv": {"k": 2, "limit": 2},
    "pckv-ue": {"k": 2, "limit": 2},
    **{key: {"d": 4} for key in VECTORS},
}


@dataclass(frozen=True)
class Known:
    """A randomizer, and the values its clients may hold."""

    randomizer: Randomizer

    @classmethod
    def of(cls, name: str, epsilon: float) -> "Known":
        """The registered one of this name. Raises LookupError where neither a closed form nor the
        reason why there is none is listed."""
        if name not in FORMS and not (
            name in RANDOMIZERS and RANDOMIZERS[name].estimate is TableChannel.estimate
        ):
            raise LookupError(
                f"{name} has no closed-form variance in tests/support/theory/closed_forms.py, nor "
                "a reason there why it has none"
            )
        return cls(RANDOMIZERS.build(name, {"epsilon": epsilon, **SETTINGS.get(name, {})}))

    @cached_property
    def values(self) -> Counts:
        """All of a small domain, with its sets no larger than the limit, silence first; of vectors
        some, and their opposites."""
        domain = self.randomizer.domain
        if isinstance(domain, Vectors):
            some = domain.some(5)
            return np.concatenate([some, -some])
        if isinstance(self.randomizer, Padded):
            return np.flatnonzero(self.randomizer.held.sum(axis=1) <= self.randomizer.limit)
        return np.roll(domain.values(), self.randomizer.silence is not None)

    @cached_property
    def laws(self) -> Floats:
        """Each value alone, all alike, and every two of them, or one and all others alike, at odds
        in steps of a twentieth; shape (laws, values). Variances are linear in the law, less the
        square of a mean. So one of the largest is that of a law on two values."""
        each = np.eye(many := len(self.values))
        mixed = [
            (share * each[one] + (1 - share) * each[other])
            for one in range(many)
            for other in range(one)
            for share in ODDS
        ]
        spread = [
            share * each[one] + (1 - share) * (1 - each[one]) / (many - 1)
            for one in range(many)
            for share in ODDS
        ]
        return np.stack([*each, np.full(many, 1 / many), *mixed, *spread])

    def _under_all(self, form: Form) -> Floats:
        return np.stack([form(self.randomizer, self.values, law) for law in self.laws])

    @cached_property
    def means(self) -> Floats:
        """What is estimated under every law, shape (laws, estimates)."""
        return self._under_all(AIMS.get(self.randomizer.name, law_itself))

    @cached_property
    def variances(self) -> Floats:
        """n times the variances under every law by the closed form, shape (laws, estimates), or
        (laws, 1) of all coordinates of a vector together."""
        return self._under_all(FORMS.get(self.randomizer.name, by_its_table))

    @property
    def worst(self) -> int:
        return int(self.variances.max(axis=1).argmax())
