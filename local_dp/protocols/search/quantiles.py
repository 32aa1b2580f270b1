"""Quantiles of a numeric column: one round of prefix sums, or a search over several rounds by
threshold questions, by the smaller rank error."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, starmap
from typing import Any, Literal, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.quantiles import (
    GROWTH,
    one_round_error,
    prefers_search,
    quantile_clients,
    search_error,
    search_rounds,
)
from local_dp.bounds.response import binomial_tail, response_gain
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_share, real_number
from local_dp.domains import levels, symbols
from local_dp.errors import InputError
from local_dp.interaction import Adaptive
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.populations.finite import Finite, Population, weighted_records
from local_dp.postprocessing.steps import ascending
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    PlainData,
    parameter,
    policy,
    target_error,
)
from local_dp.protocols.needs import Need
from local_dp.protocols.surveys.policies import Launch, ends_of
from local_dp.queries.cells import Below, Binned
from local_dp.queries.labels import apart
from local_dp.queries.query import STEPS
from local_dp.queries.tables import Question
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.prefix_signs import MAX_K, PrefixSigns, correlation, excess
from local_dp.records import Records, is_whole_type
from local_dp.tallies import Z95, Joint, Possible, Tally

# distance of the outer thresholds from the quantile, in standard errors: such a test decides four
# times in five
REACH = 2.7
_LOG_ROOT = math.log(2 * math.pi) / 2


def _log_cdf(z: float) -> float:
    """ln Pr[N(0, 1) <= z]; by its leading term far out."""
    if z > -20:
        return math.log(math.erfc(-z / math.sqrt(2)) / 2)
    return -(z**2) / 2 - math.log(-z) - _LOG_ROOT


class Search:
    """The possible places of a quantile among `symbols` symbols, after some answers.

    A question at threshold t estimates S(t) = Pr[value <= t] - q Pr[there is a value], which rises;
    the quantile is the least t where it is not below 0. Every answer multiplies the belief in the
    symbols on either side by the probability that S(t) has that sign (probabilistic bisection;
    Horstein 1963). The interval is valid for every law: a test of its own, exact by the binomial
    law, moves each end.
    """

    def __init__(self, randomizer: FiniteChannel, symbols: int, share: float) -> None:
        self.randomizer = randomizer
        self.symbols = symbols
        self.share = share
        self.low, self.high = 0, symbols - 1
        self._belief: Floats = np.zeros(symbols)  # ln of the weight of each symbol
        # of the answers at each threshold: S times clients, clients
        self._sums: dict[int, tuple[float, int]] = {}
        no, yes = randomizer.rows(np.array([0, randomizer.domain.high]), 0).tolist()
        self._report = int(yes[1] > no[1])  # the likelier one of who is below a threshold
        low, gap = no[self._report], yes[self._report] - no[self._report]
        # the probability of that report where S = 0
        self._one = float(low + gap * Fraction(share)) / randomizer.total
        self._gain: float = randomizer.total / gap

    def thresholds(self, clients: int) -> tuple[int, int, int]:
        """The thresholds of a round: REACH standard errors of `clients` reports below the quantile,
        where belief is halved, and as far above."""
        weights = np.exp(self._belief - self._belief.max())
        halves = np.abs(np.cumsum(weights)[:-1] / weights.sum() - 0.5)
        reach = REACH * self.standard_error(clients)
        last = self.symbols - 2
        below = math.floor(self._crossing(-min(reach, self.share / 2)))
        above = math.ceil(self._crossing(min(reach, (1 - self.share) / 2)))
        return min(max(below, 0), last), int(np.argmin(halves)), min(max(above, 0), last)

    def update(self, thresholds: tuple[int, ...], tallies: tuple[Tally, ...], alpha: float) -> None:
        """Takes in the answers at the thresholds below, at and above the supposed quantile.

        Tests move the ends of the interval, wrongly with probability at most alpha together. The
        outer two have 3/4 of it each, for only one can be wrong: the lower where its threshold is
        not below the quantile, the upper where its threshold is. The middle one, which moves either
        end, has 1/4.
        """
        for threshold, tally in zip(thresholds, tallies, strict=True):
            self._believe(threshold, tally)
        for place, level in ((0, 0.75 * alpha), (1, 0.25 * alpha)):
            n = tallies[place].answered
            zeros = n - int(tallies[place].counts[0, self._report])
            if binomial_tail(n, zeros, 1 - self._one) <= level:  # too few ones
                self.low = max(self.low, thresholds[place] + 1)
        for place, level in ((2, 0.75 * alpha), (1, 0.25 * alpha)):
            ones = int(tallies[place].counts[0, self._report])
            if binomial_tail(tallies[place].answered, ones, self._one) <= level:  # too many
                self.high = min(self.high, thresholds[place])

    def _believe(self, threshold: int, tally: Tally) -> None:
        n = tally.answered
        # some estimate the share of zeros before that of ones
        margin = float(self.randomizer.estimate(tally).value.ravel()[-1]) - self.share
        z = margin / self.standard_error(n)
        self._belief[: threshold + 1] += _log_cdf(z)
        self._belief[threshold + 1 :] += _log_cdf(-z)
        total, clients = self._sums.get(threshold, (0.0, 0))
        self._sums[threshold] = total + n * margin, clients + n

    def place(self) -> tuple[int, int, int]:
        """The quantile's symbol and the ends of its interval; contradictory ends are swapped."""
        low = min(self.low, self.high)
        high = max(self.low, self.high)
        return min(max(math.ceil(self._crossing(0.0)), low), high), low, high

    def standard_error(self, clients: int) -> float:
        """That of the answer of so many clients where S = 0."""
        return self._gain * math.sqrt(self._one * (1 - self._one) / clients)

    def _crossing(self, level: float) -> float:
        """The place where S reaches a level between -q and 1 - q: isotonic regression of the
        answers, straight lines between them."""
        thresholds = sorted(self._sums)
        sums, clients = (
            [self._sums[threshold][part] for threshold in thresholds] for part in (0, 1)
        )
        rising: list[float] = ascending(sums, clients).tolist() if thresholds else []
        places = [-1.0, *map(float, thresholds), self.symbols - 1.0]
        heights = [
            -self.share,
            *(min(max(height, -self.share), 1 - self.share) for height in rising),
            1 - self.share,
        ]
        after = next(place for place, height in enumerate(heights) if height >= level)
        left = heights[after - 1]
        right = heights[after]
        return places[after - 1] + (places[after] - places[after - 1]) * (level - left) / (
            right - left
        )


PARTS = np.array([0.2, 0.6, 0.2])  # of a quantile's clients in a round: below it, at it, above it
LEAST = (
    20  # clients of one quantile in the first round of a search, so that each question has a few
)


@dataclass(frozen=True)
class Located:
    """Quantiles as symbols of the grid: 0 below it, 1..bins its intervals, bins + 1 above. A place
    is a symbol and both ends of its 95 % interval."""

    places: tuple[tuple[int, int, int], ...]
    n: int
    way: Literal["one", "several"]
    errors: dict[str, float]

    @property
    def symbol(self) -> tuple[int, ...]:
        return tuple(symbol for symbol, _, _ in self.places)


@dataclass(frozen=True)
class Quantiles(LocalProtocol[Located]):
    """Estimates quantiles of `column` on `bins` equal intervals of the public [low, high]: for each
    q in `at` the least number t with Pr[column <= t] >= q.

    Numbers outside are not moved: a quantile among them is reported as below low or above high.
    Privacy: every client answers once, epsilon-locally private. Utility: rank error z C sqrt(v / n)
    in one round of prefix sums, v of order (ln bins)^2 / pi^2 for all quantiles together. A search
    over several rounds has z C sqrt(Q / n) for Q quantiles; both hold times a constant near 1
    (`bounds.quantiles`). `rounds` best takes the smaller for every n. The interval is valid for
    every law. Cost: one bit a client; a search takes at most log2(bins + 2) + 4 rounds.
    """

    name = "quantiles"
    summary = "Estimates quantiles, such as the median, of a column"
    example = "--records fair.csv --column age --low 15 --high 45 --at '0.25;0.5;0.75'"
    source = (
        "Edmonds, Nikolov, Ullman 2020 (one round); probabilistic bisection, Horstein 1963 "
        "(several)"
    )
    error_unit = "the largest distance in ranks, a share of the clients"
    column: str = parameter("value", "Column of numbers", of_table=True)
    low: float | None = parameter(None, "Public lower end; needed with a table")
    high: float | None = parameter(None, "Public upper end; needed with a table")
    at: tuple[str, ...] = parameter(("0.5",), "Shares of the quantiles; 0.5 is the median")
    bins: int = parameter(
        1024,
        "Number of equal intervals of the grid",
        help="Whole numbers get one each where so many are enough",
    )
    whole: bool = parameter(
        False,
        "Whether the column has whole numbers only",
        help="The type of a table's column also decides it",
    )
    rounds: str = parameter(
        "best",
        "Number of rounds; best: the smaller error in rank",
        choices=("best", "one", "several"),
    )
    missing: str = policy("missing numbers", exclude="quantiles of those present")
    randomizer: str = parameter(
        "best",
        "Randomizer of symbols, or in a search of one bit",
        help="best: prefix-signs, or one-bit-mean",
    )
    tolerance: float = target_error(0.02)

    def check(self) -> None:
        if not self.shares:
            raise InputError(
                "there is no quantile to estimate; give at least one share, such as 0.5 for the "
                "median"
            )
        if self.grid.domain.size > MAX_K and self.rounds == "one":
            raise InputError(
                f"{self.bins} bins are too many for one round, which takes {MAX_K - 3}; give "
                "fewer bins, or rounds several"
            )

    @property
    def shares(self) -> tuple[float, ...]:
        shares = tuple(real_number("at", text) for text in self.at)
        for share in shares:
            check_share("at", share)
            if not 0 < round(share * STEPS) < STEPS:
                raise InputError(f"at is {share}; give shares at least 1/65536 away from 0 and 1")
        return shares

    @property
    def bounds(self) -> tuple[float, float]:
        return ends_of(self.low, self.high)

    @property
    def each(self) -> bool:
        """True if every whole number has an interval of its own."""
        low, high = self.bounds
        return self.whole and 0 <= math.floor(high) - math.ceil(low) < self.bins

    @cached_property
    def grid(self) -> Binned:
        """The intervals; the query of one round."""
        low, high = self.bounds
        spare = ("missing",) if self.missing == "exclude" else ()
        if not self.each:
            return Binned(self.column, low, high, self.bins, spare)
        first, last = math.ceil(low), math.floor(high)
        return Binned(self.column, first - 0.5, last + 0.5, last - first + 1, spare)

    @property
    def symbols(self) -> int:
        """The number of symbols of a number: the intervals, below and above."""
        return self.grid.bins + 2

    @property
    def excess(self) -> float:
        """v, with C^2 v / n the variance of a prefix sum; infinite where the grid is too fine for
        one round."""
        k = self.grid.domain.size
        return excess(1 << (k - 1).bit_length()) if k <= MAX_K else math.inf

    def searches(self, clients: float = math.inf, epsilon: float = 1.0) -> bool:
        """True if the protocol takes the search over several rounds."""
        if self.rounds == "best" and self.randomizer != "best":
            made = self.need.randomizer(self.randomizer, epsilon, self.name)
            return not made.domain.takes(self.grid.domain)
        enough = clients >= LEAST * len(self.shares)
        better = math.isinf(self.excess) or (
            enough and prefers_search(self.excess, len(self.shares), BETA)
        )
        return self.rounds == "several" or (self.rounds == "best" and better)

    @property
    def need(self) -> Need:
        own, search = self._prefixes, self._questions
        return replace(own, others=(*own.others, search, *search.others))

    @property
    def _prefixes(self) -> Need:
        prefixes = Need(self.grid.domain, estimates=PrefixSigns.estimates)
        return Need(self.grid.domain, joint=True, others=(prefixes,))

    @property
    def _questions(self) -> Need:
        """Of the bit that a search asks for; a missing number lies between yes and no."""
        yes_no = (Need(symbols(2), ones=True, bit=True),) if self.missing == "refuse" else ()
        return Need(levels(STEPS), ones=True, bit=True, others=yes_no)

    def clients(self, epsilon: float) -> int:
        searches = self.searches(epsilon=epsilon)
        excess = math.inf if searches else self.excess
        clients = quantile_clients(epsilon, excess, len(self.shares), self.tolerance, BETA)
        return math.ceil(clients * self.times(epsilon) ** 2) if searches else clients

    def times(self, epsilon: float) -> float:
        """How many times the standard error of the best is that of the search's randomizer."""
        if self.randomizer == "best":
            return 1.0
        errors = [search.standard_error(1) for search in self._searches(epsilon)]
        return max(errors) * 2 / response_gain(epsilon)

    def _searches(self, epsilon: float) -> list[Search]:
        which = OneBitMean.name if self.randomizer == "best" else self.randomizer
        randomizer: Any = self._questions.randomizer(which, epsilon, self.name)
        return [Search(randomizer, self.symbols, share) for share in self.shares]

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[Located]:
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        play = self._search if self.searches(clients, epsilon) else self._one_round
        return Adaptive(lambda: play(epsilon, clients))

    def _errors(self, epsilon: float, clients: int) -> dict[str, float]:
        """The rank error of each way, for all quantiles with probability 95 %, by closed form; at
        most 1."""
        count = len(self.shares)
        several = search_error(epsilon, count, clients, BETA)
        one = one_round_error(epsilon, self.excess, count, clients, BETA)
        return {"one": min(one, 1.0), "several": min(several, 1.0)}

    def _one_round(self, epsilon: float, clients: int) -> LocalPlay[Located]:
        randomizer: Randomizer = PrefixSigns(epsilon, k=self.grid.domain.size)
        if self.randomizer != "best":
            randomizer = self._prefixes.randomizer(self.randomizer, epsilon, self.name)
        (tally,) = yield (LocalQuery(self.grid, randomizer, Cohort(0, clients)),)
        margins = [self._margins(randomizer, tally, share) for share in self.shares]
        places = [_invert(*each) for each in margins]
        errors = self._errors(epsilon, clients)
        if self.randomizer != "best":
            z = normal_quantile(BETA / (2 * len(margins)))
            errors["one"] = min(z * max(float(error.max()) for _, error in margins), 1.0)
        return Located(tuple(places), tally.n, "one", errors)

    def _margins(self, randomizer: Randomizer, tally: Tally, share: float) -> tuple[Floats, Floats]:
        """How far each prefix sum is above `share` of the sum of all symbols, and its standard
        error."""
        k = self.grid.domain.size
        if isinstance(randomizer, PrefixSigns):
            return _margins(randomizer, tally, share, self.symbols)
        weights = np.tri(self.symbols - 1, k) - (np.arange(k) < self.symbols) * share
        joint: Joint = self._prefixes.reader(randomizer).joint(tally, weights)
        return joint.value, np.sqrt(np.maximum(np.diag(joint.covariance), 0.0))

    def _search(self, epsilon: float, clients: int) -> LocalPlay[Located]:
        searches = self._searches(epsilon)
        rounds, n = list(self._cohorts(clients)), 0
        for left, cohorts in zip(range(len(rounds), 0, -1), rounds, strict=True):
            thresholds = [
                search.thresholds(len(cut[0]))
                for search, cut in zip(searches, cohorts, strict=True)
            ]
            tallies = yield tuple(
                LocalQuery(self._below(threshold, search), search.randomizer, cohort)
                for search, own, cut in zip(searches, thresholds, cohorts, strict=True)
                for threshold, cohort in zip(own, cut, strict=True)
            )
            n += sum(tally.n for tally in tallies)
            for place, (search, own) in enumerate(zip(searches, thresholds, strict=True)):
                search.update(own, tallies[3 * place : 3 * place + 3], 0.05 / 2**left)
        errors = self._errors(epsilon, clients)
        errors["several"] = min(errors["several"] * self.times(epsilon), 1.0)
        return Located(tuple(search.place() for search in searches), n, "several", errors)

    def _cohorts(self, clients: int) -> Iterator[Sequence[tuple[Cohort, ...]]]:
        """For each round and quantile the cohorts below, at and above it."""
        count = len(self.shares)
        rounds = search_rounds(self.symbols, clients / count, LEAST) or 1
        if clients < 3 * count:
            raise InputError(
                f"a search for {count} quantiles asks {3 * count} questions a round; {clients} "
                "clients are too few, so use rounds one"
            )
        growth = GROWTH ** np.arange(rounds) * (GROWTH - 1) / (GROWTH**rounds - 1)
        parts = (growth[:, None, None] * np.full((count, 1), 1 / count) * PARTS).ravel()
        # no cohort is empty
        ends = np.rint(np.cumsum(parts) * (clients - len(parts))).astype(np.int64)
        ends += np.arange(1, len(parts) + 1)
        cohorts = starmap(Cohort, pairwise([0, *ends.tolist()]))
        threes = list(zip(cohorts, cohorts, cohorts, strict=True))
        for start in range(0, len(threes), count):
            yield threes[start : start + count]

    def _below(self, threshold: int, search: Search) -> Below | Question:
        """Whether a number is among the symbols up to the threshold."""
        edges = self.grid.edges
        # the last interval holds both its ends
        end = edges[threshold] if threshold < self.grid.bins else np.nextafter(edges[-1], math.inf)
        if search.randomizer.domain.high == 1:
            return Question(f"`{self.column}` < {float(end)!r}")
        return Below(self.column, float(end), round(search.share * STEPS))

    def synthetic(self, clients: int, seed: int) -> Population:
        """Normal around 0.4 of the grid with standard deviation 0.15 of it, at the middles of the
        intervals."""
        edges = self.grid.edges
        middles = (edges[1:] + edges[:-1]) / 2
        places = (middles - edges[0]) / (edges[-1] - edges[0])
        bell = np.exp(-(((places - 0.4) / 0.15) ** 2) / 2)
        return Finite(Records({self.column: middles}), bell, clients, seed)

    def for_table(self, table: Launch) -> Self:
        more = "; what lies beyond them is counted too"
        table.bounded(self.column, self.low, self.high, "a quantile", more)
        table.refuse_missing(
            self.missing, self.column, "missing=exclude (quantiles of those present)"
        )
        return replace(self, whole=self.whole or is_whole_type(table.types[self.column].dtype))

    def possible(self, result: Located) -> Possible:
        return Possible(*self.bounds)

    def describe(self, result: Located) -> PlainData:
        low, high = self.bounds
        beyond = {0: "below", self.symbols - 1: "above"}
        choice = {
            "taken": result.way,
            "rank_error": result.errors,
            "explanation": self._sentence(result),
        }
        return {
            "column": self.column,
            "labels": list(map(_label, self.shares)),
            "estimate": list(map(self._middle, result.symbol)),
            "interval": [
                [self._ends(first)[0], self._ends(last)[1]] for _, first, last in result.places
            ],
            "where": [beyond.get(symbol, "inside") for symbol in result.symbol],
            "low": low,
            "high": high,
            "n": result.n,
            "choice": choice,
        }

    def _sentence(self, result: Located) -> str:
        """The way taken, the rank errors of both ways, and the quantiles beyond the grid."""
        other = {"one": "several", "several": "one"}[result.way]
        ways = {"one": "one round of prefix sums", "several": "a search over several rounds"}
        low, high = apart(self.bounds)
        sentence = (
            f"by {ways[result.way]}: rank errors within {result.errors[result.way]:.2g} with "
            f"probability 95 % ({ways[other]}: {result.errors[other]:.2g})"
        )
        if self.missing == "exclude":
            sentence += (
                ", as shares of all clients asked (for ranks among those present, divide by the "
                "share present)"
            )
        beyond = {0: f"below {low}", self.symbols - 1: f"above {high}"}
        for share, symbol in zip(self.shares, result.symbol, strict=True):
            if symbol in beyond:
                sentence += f"; the {_label(share)} lies {beyond[symbol]}"
        return sentence

    def _ends(self, symbol: int) -> tuple[float | None, float | None]:
        """The least and the greatest number of a symbol; None where there is none."""
        if self.each and 0 < symbol < self.symbols - 1:
            return self._middle(symbol), self._middle(symbol)
        edges = [None, *self.grid.edges.tolist(), None]
        return edges[symbol], edges[symbol + 1]

    def _middle(self, symbol: int) -> float | None:
        """The number that stands for a symbol: the middle of its interval, which is the whole
        number in it; None outside the grid."""
        if not 0 < symbol < self.symbols - 1:
            return None
        middle = float(self.grid.edges[symbol - 1] + self.grid.edges[symbol]) / 2
        return float(round(middle)) if self.each else middle  # the edges are rounded

    def truth(self, population: Population) -> Floats:
        """The quantiles of the distribution that the clients are drawn from, of those present,
        shape (Q,); not bound to the grid."""
        records, weights = weighted_records(population)
        numbers = records.numbers(self.column)
        order = np.argsort(numbers)[: int(np.sum(~np.isnan(numbers)))]  # missing ones are last
        heights = np.cumsum(weights[order])
        levels = np.array(self.shares) * heights[-1] * (1 - 1e-12)
        return np.asarray(numbers[order][np.searchsorted(heights, levels)])

    def ranks(self, population: Population) -> tuple[Floats, float]:
        """The ranks of the ends of the symbols among those present, 0 to 1, shape (symbols + 1,),
        and the share of those present."""
        heights = np.cumsum(population.law(self.grid)[: self.symbols])
        present = float(heights[-1])
        return np.concatenate([[0.0], heights / present]), present

    def true_error(self, result: Located, population: Population) -> float:
        """The largest distance of a share from the ranks, among those present, of the reported
        symbol."""
        heights = self.ranks(population)[0]
        symbol = np.array(result.symbol)
        share = np.array(self.shares)
        beyond = np.maximum(heights[symbol] - share, share - heights[symbol + 1] - 1e-12)
        return float(np.maximum(0.0, beyond).max())


def _label(share: float) -> str:
    return "median" if share == 0.5 else f"quantile {share:g}"


def _margins(
    randomizer: PrefixSigns, tally: Tally, share: float, symbols: int
) -> tuple[Floats, Floats]:
    """The margins of `Quantiles` in closed form."""
    sums, last = randomizer.estimate(tally).value[:symbols], symbols - 1
    margin = sums[:last] - share * sums[last]
    noise = np.full(last, correlation(randomizer.size)[0])
    if randomizer.k > len(sums):  # the share of those present is an estimate too
        noise = (
            noise * (1 + share**2)
            - 2 * share * correlation(randomizer.size)[last - np.arange(last)]
        )
    return margin, randomizer.gain * np.sqrt(noise / tally.n)


def _invert(margin: Floats, error: Floats) -> tuple[int, int, int]:
    """The quantile's symbol and interval from all margins: the crossing of their isotonic
    regression, and all symbols that no test excludes."""
    last, away = len(margin), Z95 * error
    # the regression is below 0 up to the least partial sum
    symbol = int(np.argmin(np.concatenate([[0.0], np.cumsum(margin)])))
    low = int(np.argmax(np.append(margin >= -away, True)))
    high = last - int(np.argmax(np.append((margin <= away)[::-1], True)))
    return min(max(symbol, low), max(low, high)), min(low, high), max(low, high)
