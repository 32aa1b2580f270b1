"""Traitor tracing: who gave a pirate decoder the keys, and thereby who is in a table of keys that is answered too well (lecture notes 5.3)."""

from dataclasses import replace

from local_dp.attacks.codes import Code
from local_dp.attacks.tracing import Traced, tracing
from local_dp.interaction import Nonadaptive
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.queries.ciphers import encrypted
from local_dp.records import Records


def traitor_tracing(code: Code, keys: Records, tolerance: float) -> Nonadaptive[StatisticalQuery, float, Traced]:
    """The attack: broadcasts d ciphertexts in which user i reads row i of the code, and traces the word that the decoder reads.

    The decoder is any oracle for the queries that decrypt, a pirate or a curator whose records are the keys. Whoever holds the coalition's keys alone reads its
    rows alone, so the word is feasible, and `tracing` accuses as by the code: an efficient curator that errs by less than 1/2 on every such query is not
    private, however it works. Accusations stand on the cipher besides the p-values. Source: Chor, Fiat, Naor 1994; Dwork et al. 2009.
    """
    queries = tuple(StatisticalQuery(query, tolerance) for query in encrypted(keys, code.rows))
    return replace(tracing(code.shares, code.rows, tolerance, rounded=True), queries=queries)
