"""Where interaction helps, masked parity, and where it provably cannot: records of one bit, by
protocols written out."""

from fractions import Fraction

import numpy as np
from numpy.random import default_rng

from local_dp.bounds.masked_parity import masked_parity_clients, masked_parity_one_round_bound
from local_dp.experiments.lab.parts import Check, Row, Rows, Table, every, tabulate
from local_dp.hardness.transcripts import (
    as_randomized_response,
    cube_inputs,
    random_protocol,
    transcript_laws,
)

LEAST = 4  # chances from 4 to 12 sixteenths: purely private
TURNS = {"quick": {2: 6, 3: 6}, "full": {2: 8, 3: 7, 4: 8}}  # by clients
COUNT = 15  # protocols
MASKED = (4, 8, 12, 16, 20)  # the d of the table


class Replayed(Row):
    """How many protocols one round has replayed."""

    same: int  # with the same law for all inputs, in fractions
    proper: int  # by a server whose probabilities are no less than 0 and sum to 1
    growth: str  # the largest e^epsilon, a fraction


class OneBit(Row):
    """Random protocols on bits, fully interactive, and one round of randomized response in place of
    each."""

    clients: int
    turns: int
    count: int

    def measure(self, seed: int) -> Replayed:
        generator, inputs = default_rng(seed), cube_inputs(self.clients)
        same, proper, growths = 0, 0, [Fraction(1)]
        for _ in range(self.count):
            protocol = random_protocol(self.clients, self.turns, generator, LEAST)
            round = as_randomized_response(protocol, self.clients)
            # sixteenths are exact in doubles
            exact = np.vectorize(Fraction, otypes=[object])(transcript_laws(protocol, inputs))
            same += bool((round.laws() == exact).all())
            proper += bool((round.server >= 0).all() and (round.server.sum(axis=1) == 1).all())
            growths.append(round.growth)
        return Replayed(same, proper, str(max(growths)))


def bits_check(rows: Rows[OneBit, Replayed]) -> Check:
    return every(
        "On records of one bit no interaction helps: one round of randomized response has exactly "
        "the law of every protocol drawn, however often it asks",
        (
            (
                m.same == m.proper == p.count,
                f"{m.same} of {p.count} with {p.clients} clients and {p.turns} turns",
            )
            for p, m in rows
        ),
    )


def bits_table(rows: Rows[OneBit, Replayed]) -> Table:
    cells = []
    for d in MASKED:
        rounds = f"{masked_parity_clients(d, 1.0, 0.1):,} clients"
        limit = f"at least {masked_parity_one_round_bound(d, 1.0, 0.9):,.0f} clients"
        cells.append((f"masked parity, d = {d}", rounds, limit))
    for p, _ in rows:
        task = f"any answer from {p.clients} bits in {p.turns} turns"
        cells.append((task, "any number", "as many: the same law"))
    return tabulate(
        "Where interaction helps, and where it cannot (epsilon 1, 90 %)",
        "task | in rounds | in one round",
        cells,
    )
