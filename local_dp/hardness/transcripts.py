"""Fully interactive protocols of a few clients: the law of the transcript, and one round with this
law."""

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from local_dp.arrays import Column, Counts, Floats
from local_dp.checks import check_whole
from local_dp.errors import InputError

SIXTEENTHS = 16  # chances of random protocols: laws of up to 13 turns are then exact in doubles


@dataclass(frozen=True)
class Turn:
    """`speaker` sends 1 with the probability `chances[its input bit]`, else 0; `after` is the next
    turn after a 0 and after a 1, None at the end."""

    speaker: int
    chances: tuple[float, float]
    after: tuple["Turn | None", "Turn | None"] = (None, None)


def transcript_laws(protocol: Turn, inputs: Counts) -> Floats:
    """The law of the transcript for each row of `inputs`, bits of shape (rows, clients): shape
    (rows, transcripts). Cost: rows times turns."""
    laws: list[Floats] = []

    def follow(turn: Turn | None, law: Floats) -> None:
        if turn is None:
            laws.append(law)
            return
        ones = np.array(turn.chances)[inputs[:, turn.speaker]]
        follow(turn.after[0], law * (1 - ones))
        follow(turn.after[1], law * ones)

    follow(protocol, np.ones(len(inputs)))
    return np.stack(laws, axis=1)


def cube_inputs(clients: int) -> Counts:
    """All inputs, shape (2^clients, clients): the first client's bit is the highest of a row's
    number."""
    return np.arange(1 << clients)[:, None] >> np.arange(clients)[::-1] & 1


def cut_inputs(clients: int) -> Counts:
    """Rows of bits: nobody has a 1, each client alone, everybody. Shape (clients + 2, clients)."""
    check_whole("clients", clients, 1, 16)
    alone = np.eye(clients)
    return np.vstack([np.zeros((1, clients)), alone, np.ones((1, clients))]).astype(np.int64)


def random_protocol(
    clients: int, turns: int, generator: np.random.Generator, least: int = 0
) -> Turn:
    """`turns` turns after every history; the speaker and its chances, from `least` to 16 - least
    sixteenths, are drawn, many of them the least or the most."""
    after: tuple[Turn | None, Turn | None] = (None, None)
    if turns > 1:
        after = (
            random_protocol(clients, turns - 1, generator, least),
            random_protocol(clients, turns - 1, generator, least),
        )
    sixteenths = np.rint(SIXTEENTHS * generator.beta(0.4, 0.4, size=2))
    zero, one = np.clip(sixteenths, least, SIXTEENTHS - least) / SIXTEENTHS
    return Turn(int(generator.integers(clients)), (float(zero), float(one)), after)


@dataclass(frozen=True)
class OneRound:
    """Each client reports its bit once by randomized response, truthfully with probability E / (E +
    1); by the reports the server draws a transcript.

    `server` has Pr[transcript | reports] in fractions, shape (2^clients, transcripts), rows in the
    order of `cube_inputs`.
    """

    growth: Fraction  # E = e^epsilon
    server: Column

    def laws(self) -> Column:
        """The law of the transcript for all inputs, in fractions: rows as in `server`, shape
        (2^clients, transcripts)."""
        truth = self.growth / (self.growth + 1)
        size = len(self.server)
        laws = self.server
        for client in range(size.bit_length() - 1):
            own = laws.reshape(1 << client, 2, -1)
            laws = (truth * own + (1 - truth) * own[:, ::-1]).reshape(size, -1)
        return laws


def as_randomized_response(
    protocol: Turn, clients: int, growth: Fraction | None = None
) -> OneRound:
    """One round of randomized response with the law of any purely local protocol on bits, exact in
    rationals: here interaction is worthless (limits 1).

    `growth` is E = e^epsilon, by default the protocol's own: the most by which one client's bit
    changes the probability of a transcript. Cost: 2^clients times transcripts. Raises InputError
    where a transcript betrays a bit for certain, or where `growth` is below the protocol's own or
    not above 1.
    """
    check_whole("clients", clients, 1, 10)
    factors = _factors(protocol, clients)
    zeros = factors[:, :, 0]
    ones = factors[:, :, 1]
    if not (zeros * ones).all():
        raise InputError(
            "a transcript is possible for one bit of a client alone: its loss is infinite; give "
            "chances strictly between 0 and 1"
        )
    own = max((zeros / ones).max(), (ones / zeros).max())
    # replies that depend on no bit have E = 1: any larger one serves
    growth = growth or (own if own > 1 else Fraction(2))
    if growth < own or growth <= 1:
        raise InputError(
            f"e^epsilon is {growth}, and this protocol needs {own}; give at least that, above 1"
        )
    shares = (growth * factors - factors[:, :, ::-1]) / (growth - 1)
    # a row of transcripts by two reports, one client after the other
    rows = (shares[:, client] for client in range(clients))
    return OneRound(
        growth,
        reduce(
            lambda joint, row: (joint[:, :, None] * row[:, None, :]).reshape(len(row), -1), rows
        ).T,
    )


def _factors(protocol: Turn, clients: int) -> Column:
    """f_i(t, b) for each possible transcript t, client i and bit b, in fractions, shape
    (transcripts, clients, 2): their products over i are the laws."""
    transcripts: list[Column] = []

    def follow(turn: Turn | None, factors: Column) -> None:
        if turn is None:
            transcripts.append(factors)
            return
        ones = np.array([Fraction(chance) for chance in turn.chances])
        for after, chances in zip(turn.after, (1 - ones, ones), strict=True):
            if chances.any():
                own = factors.copy()
                own[turn.speaker] = own[turn.speaker] * chances
                follow(after, own)

    follow(protocol, np.full((clients, 2), Fraction(1)))
    return np.stack(transcripts)
