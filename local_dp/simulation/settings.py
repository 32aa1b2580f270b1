"""The settings of a run: the protocol, its clients, the source of chance, the tier."""

import secrets
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

from local_dp.bounds.attacks import Influence, influence_of
from local_dp.errors import InputError
from local_dp.interaction import Algorithm, Nonadaptive
from local_dp.loss import nano_epsilon
from local_dp.noise import KeyedNoise, Noise, SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.populations.finite import Population, Rows
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.server.progress import Progress
from local_dp.server.quorum import Terms
from local_dp.shuffle.central import Behind, with_coins
from local_dp.simulation.faults import Faults
from local_dp.tallies import Tally

OnProgress: TypeAlias = Callable[[Progress], None]
LocalAlgorithm: TypeAlias = Algorithm[LocalQuery, Tally, Any]
Tier: TypeAlias = Literal["processes", "hosts", "population", "aggregate"]
TIERS: tuple[Tier, ...] = get_args(Tier)
EMBEDDED = "embedded"
SECRET_BITS = 128
SHOWN_BITS = 53  # of a seed that is drawn to be shown: many readers of JSON keep no more
MOST_HOSTS = 256
MOST_CLIENTS: dict[Tier, int] = {
    "processes": 5000,
    "hosts": 10**8,
    "population": 10**10,
    "aggregate": 10**15,
}


@dataclass(frozen=True)
class Randomness:
    """Where chance comes from: a seed for everything, or the system's entropy for the clients'
    noise, and for each other use a secret of its own.

    The keys of the public coins are sent to everybody. With the secret that chose rows and made
    records, a search for it would reveal these.
    """

    seed: int
    private: bool
    coins: int | None = None

    @classmethod
    def choose(cls, seed: int | None, private: bool) -> "Randomness":
        """Raises InputError for a seed in private mode."""
        if private and seed is not None:
            raise InputError(
                f"a private run takes no seed, and --seed is {seed}; leave out one of --seed and "
                "--private"
            )
        if seed is not None:
            seed = int(KeyedNoise(seed).seed)
        if private:
            return cls(secrets.randbits(SECRET_BITS), True, secrets.randbits(SECRET_BITS))
        return cls(secrets.randbits(SHOWN_BITS) if seed is None else seed, False)

    @property
    def coin_seed(self) -> int:
        return self.seed if self.coins is None else self.coins

    def noise(self) -> Noise:
        return SystemNoise() if self.private else KeyedNoise(self.seed)


@dataclass(frozen=True)
class Settings:
    """One run. `broker` is "embedded" or a URL; `terms` are those of each round over it; `allowed`
    is the clients' list of randomizers (None: all).

    `unverified` lets a simulation in memory use a randomizer that loses more than it declares; real
    clients always refuse it. `cluster` is the address of a Dask scheduler whose workers simulate
    the population. `behind` puts a shuffler between clients and server. `faults` are what is to go
    wrong in a run over a broker. `worst_case` asks for intervals that hold although clients are
    missing, for any reason, and this share of all of them lies. `stores` is a folder in which each
    client process or host keeps its answers and charges, also over several runs. The column
    `person` names people. Where one round, fixed beforehand, asks all rows of a table the same,
    these are not dealt: client i is row i. With `stores` they are dealt, since a store belongs to
    its rows. `override` replaces the protocol's algorithm. `raw` shows unbiased numbers, also those
    that no data can have.
    """

    protocol: LocalProtocol[Any]
    population: Population
    epsilon: float
    randomness: Randomness
    _: KW_ONLY
    tier: Tier = "hosts"
    hosts: int = 2
    broker: str = EMBEDDED
    terms: Terms = field(default_factory=Terms)
    allowed: tuple[str, ...] | None = None
    unverified: bool = False
    cluster: str = ""
    behind: Behind | None = None
    faults: Faults | None = None
    worst_case: float | None = None
    stores: str = ""
    person: str = ""
    override: LocalAlgorithm | None = None
    raw: bool = False

    def __post_init__(self) -> None:
        self._check()
        population = self.population
        if (
            isinstance(population, Rows)
            and population.dealing is not None
            and not self.stores
            and asks_everybody(self.algorithm, population.size)
        ):
            object.__setattr__(self, "population", population.in_order())

    def _check(self) -> None:
        """Raises InputError for options that do not go together."""
        nano_epsilon(self.epsilon)
        if self.tier not in TIERS:
            raise InputError(f"there is no tier {self.tier!r}; choose from {', '.join(TIERS)}")
        if not 1 <= self.hosts <= MOST_HOSTS:
            raise InputError(f"hosts is {self.hosts}; give from 1 to {MOST_HOSTS}")
        if self.population.size > MOST_CLIENTS[self.tier]:
            others = [tier for tier in TIERS if self.population.size <= MOST_CLIENTS[tier]]
            hint = f"--tier {others[0]}, or fewer clients" if others else "fewer clients"
            raise InputError(
                f"{self.population.size:,} clients are too many for tier {self.tier}, which takes "
                f"at most {MOST_CLIENTS[self.tier]:,}; use {hint}"
            )
        real, private = self.tier in ("processes", "hosts"), self.randomness.private
        if self.unverified and (real or private):
            raise InputError(
                "clients of their own refuse an unverified randomizer; leave out unverified, or "
                "simulate in tier population or aggregate"
            )
        if self.cluster and (self.tier != "population" or private):
            raise InputError(
                "a cluster simulates the population tier, and is open to everybody who reaches "
                "it: use --tier population without --private"
            )
        if self.stores and not real:
            raise InputError(
                "clients in memory keep nothing in files; use --tier processes or hosts, or no "
                "--stores"
            )
        if self.person and not (self.stores and self.tier == "hosts" and self.hosts == 1):
            raise InputError(
                "people who move between stores would have a budget in each; with "
                f"person={self.person!r} give stores=DIR, tier=hosts and hosts=1"
            )
        if self.faults is not None and (not real or self.behind is not None):
            raise InputError(
                "faults are those of messages and members: use --tier hosts or processes and no "
                "--shuffle, or no --fault"
            )
        if self.tier == "aggregate" and private:
            raise InputError(
                "the aggregate tier draws whole tallies from their law: it simulates, and cannot "
                "be private; leave out --private"
            )
        self._check_worst_case()

    def _check_worst_case(self) -> None:
        if self.worst_case is not None:
            if not 0 <= self.worst_case < 1:
                raise InputError(
                    f"worst-case is {self.worst_case}; give the share of the clients that may "
                    "lie, from 0 to below 1"
                )
            if self.influence is None:
                raise InputError(
                    f"{self.protocol.name} is no average over the reports of one query, so there "
                    "is no worst case to show; leave out worst-case"
                )

    @cached_property
    def influence(self) -> Influence | None:
        """Of one report on the result."""
        return influence_of(self.algorithm)

    @cached_property
    def algorithm(self) -> LocalAlgorithm:
        """The one algorithm of the run; behind a shuffler, with coins that the clients draw
        themselves."""
        algorithm: LocalAlgorithm = self.override or self.protocol.algorithm(
            self.epsilon, self.population.size
        )
        return algorithm if self.behind is None else with_coins(algorithm)


def asks_everybody(algorithm: LocalAlgorithm, clients: int) -> bool:
    """True if each query, known before the first answer, is to all clients, so that it does not
    matter which rows they have."""
    return isinstance(algorithm, Nonadaptive) and all(
        query.cohort == Cohort(0, clients) for query in algorithm.queries
    )
