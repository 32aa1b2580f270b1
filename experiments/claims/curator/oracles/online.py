"""What `oracles` shows of the barrier: a private minimiser run on prefixes is an online learner,
whose regret grows with the scale of its noise."""

import math

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.bounds.curator import gumbel_spread, leader_regret_bound, separator_spread
from local_dp.curator.oracle_efficient.online import (
    LossSequence,
    leader_attack,
    path_game,
    separator_noise,
)
from local_dp.curator.oracle_efficient.separated import Parities, Separated, Thresholds
from local_dp.experiments.lab.parts import (
    Check,
    Claimed,
    Figure,
    Normal,
    Row,
    Rows,
    Table,
    every,
    holds,
    mean,
    positive_mean,
    seeded,
    tabulate,
)

D, ROUNDS, RUNS = 6, 4096, 8
SCALES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)  # epsilon
RANDOM, LEADER, PATH = "random labels", "against the leader", "after Hazan and Koren"
SEQUENCES = (RANDOM, LEADER, PATH)
RSPM, GUMBEL = "RSPM", "Gumbel noise"
BITS, DRAWS = (6, 10), 400  # the classes whose perturbations are counted have 2^d queries


class Regrets(Row):
    # by epsilon, one for each run, of fresh noise in each round
    perturbed: dict[float, list[float]]
    gumbel: dict[float, float]  # exact


class Regret(Row):
    """The regret of both learners on a sequence of losses over the 2^D parities, or as many
    experts."""

    sequence: str

    def measure(self, seed: int) -> Regrets:
        losses = sequence(self.sequence, default_rng([seed, SEQUENCES.index(self.sequence)]))
        draws = seeded(seed)

        def regret(epsilon: float) -> float:
            noise = separator_noise(Parities(D), epsilon, ROUNDS, draws)
            return float(losses.regret(noise))

        noisy = {epsilon: [regret(epsilon) for _ in range(RUNS)] for epsilon in SCALES}
        return Regrets(noisy, {epsilon: losses.gumbel_regret(epsilon) for epsilon in SCALES})


def sequence(name: str, generator: Generator) -> LossSequence:
    if name == PATH:
        return path_game(D, ROUNDS, lambda totals: int(np.argmin(totals)), generator)
    values = Parities(D).values(np.arange(1 << D)).astype(np.int64)
    if name == LEADER:
        return leader_attack(values, ROUNDS)
    points, labels = generator.integers(0, 1 << D, ROUNDS), generator.integers(0, 2, ROUNDS)
    return LossSequence((values[:, points] != labels).T.astype(np.int64))


class Spreads(Row):
    spreads: list[float]  # of the noise on the queries, at epsilon 1


class Spread(Row):
    """The noise of the thresholds on 2^d - 1 points: a random walk."""

    d: int

    def measure(self, seed: int) -> Spreads:
        draws, queries = seeded(seed, self.d), Thresholds((1 << self.d) - 1)
        return Spreads(np.ptp(separator_noise(queries, 1.0, DRAWS, draws), axis=1).tolist())


def _parities() -> tuple[int, int]:
    queries: Separated = Parities(D)
    return len(queries.separators), queries.shift


def _bound(method: str, epsilon: float) -> float:
    spread = (
        separator_spread(*_parities(), epsilon)
        if method == RSPM
        else gumbel_spread(1 << D, epsilon)
    )
    return leader_regret_bound(ROUNDS, epsilon, spread)


def online_finding(
    regrets: Rows[Regret, Regrets], spreads: Rows[Spread, Spreads]
) -> tuple[list[Check], list[Table], list[Figure]]:
    means, exact = {}, {}
    for p, m in regrets:
        for epsilon in SCALES:
            means[p.sequence, epsilon] = mean(m.perturbed[epsilon])
            exact[p.sequence, epsilon] = m.gumbel[epsilon]
    root = math.sqrt(ROUNDS)
    rows = []
    for (name, epsilon), average in means.items():
        estimate, low, high = (each / root for each in average.stated)
        rows.append((f"{RSPM}, {name}", 1 / epsilon, estimate, low, high))
    for (name, epsilon), regret in exact.items():
        share = regret / root
        rows.append((f"{GUMBEL}, {name}", 1 / epsilon, share, share, share))
    table = tabulate(
        "regret over sqrt(T) of private minimisers of prefixes",
        "learner and sequence | 1 / epsilon | regret | 95 % from | to",
        rows,
    )
    title = f"Private minimisers of prefixes as online learners, T = {ROUNDS:,}"
    figure = Figure(
        "oracles-online",
        title,
        "1 / epsilon",
        "regret / sqrt(T)",
        table.curves(" | ".join(table.columns), group=True),
        log_x=True,
    )
    return (
        [_check_gumbel(exact), _check_perturbed(means), _check_spreads(spreads)],
        [table],
        [figure],
    )


def _check_gumbel(exact: dict[tuple[str, float], float]) -> Check:
    shares = {place: regret / _bound(GUMBEL, place[1]) for place, regret in exact.items()}
    largest = max(shares.items(), key=lambda each: each[1])
    return every(
        "the regret of Gumbel noise, computed, is (e^(eps/2) - 1) T + E[max Z - min Z] at "
        "most, on each sequence at each epsilon",
        (
            (
                share <= 1,
                f"largest share: {share:.2f}, {place[0]}, epsilon {place[1]:g}"
                if (place, share) == largest
                else "",
            )
            for place, share in shares.items()
        ),
    )


def _check_perturbed(means: dict[tuple[str, float], Normal]) -> Check:
    claims = {}
    for (name, epsilon), figure in means.items():
        third = ROUNDS / 6 if epsilon == _best() else math.inf
        bound = min(_bound(RSPM, epsilon), third)
        claims[f"{name}, epsilon {epsilon:g}"] = Claimed(figure, high=bound)
    return holds(
        "so is that of RSPM, and at the scale with the least bound it is a third of what the "
        "leader without noise loses, T / 2, at most",
        claims,
    )


def _best() -> float:
    return min(SCALES, key=lambda epsilon: _bound(RSPM, epsilon))


def _check_spreads(spreads: Rows[Spread, Spreads]) -> Check:
    """A walk of four times as many steps is twice as wide: 16 times the points from d = 6 to 10."""
    widths = {p.d: positive_mean(m.spreads) for p, m in spreads}
    few, many = BITS
    growth = {"": Claimed(widths[many] / widths[few], 3.6, 4.6)}
    return holds(
        "16 times as many thresholds widen their perturbations 3.6 to 4.6 times, as sqrt(N)", growth
    )
