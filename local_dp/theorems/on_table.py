"""SQ algorithms over x0, x1, ... and y, run on a table: its queries encoded, and rows with something missing left out."""

from dataclasses import replace
from typing import overload

from local_dp.interaction import Adaptive, Game, Nonadaptive, R, translate
from local_dp.oracles.statistical.oracles import Statistical, StatisticalAlgorithm, StatisticalPlay, StatisticalQuery, StatisticalRounds
from local_dp.queries.encoded import Encoding, encoded
from local_dp.queries.tables import Question

LEAST = 0.05  # a share of complete rows that is believed: below it the answers would be noise


@overload
def on_table(algorithm: Statistical[R], encoding: Encoding) -> Statistical[R]: ...
@overload
def on_table(algorithm: StatisticalRounds[R], encoding: Encoding) -> StatisticalRounds[R]: ...
def on_table(algorithm: StatisticalAlgorithm[R], encoding: Encoding) -> StatisticalAlgorithm[R]:
    """The same algorithm with each query put to the encoded record. Preserves adaptivity. An incomplete record counts as 0 in every answer."""

    def ask(queries: tuple[StatisticalQuery, ...], before: tuple[StatisticalQuery, ...]) -> tuple[StatisticalQuery, ...]:
        return tuple(replace(query, query=encoded(encoding, query.query)) for query in queries)

    return translate(algorithm, ask, lambda queries, asked, answers: answers)


def completeness(encoding: Encoding, tolerance: float) -> StatisticalQuery:
    """Asks for the share of complete rows: a question that each of them answers with yes, and the others count as 0."""
    name = encoding.shown[0]
    return StatisticalQuery(encoded(encoding, Question(f"{name} == {name}")), tolerance)


@overload
def among_complete(algorithm: Statistical[R], encoding: Encoding) -> Statistical[R]: ...
@overload
def among_complete(algorithm: StatisticalRounds[R], encoding: Encoding) -> StatisticalRounds[R]: ...
def among_complete(algorithm: StatisticalAlgorithm[R], encoding: Encoding) -> StatisticalAlgorithm[R]:
    """`on_table` with expectations over the complete rows alone: its first round also asks for their share m, and every answer E[q; complete] is divided by it.

    E[q; complete] / m = E[q | complete]. On an exact oracle that is exact. One more query; tolerances grow by 1 / m. Preserves adaptivity.
    """
    asked = on_table(algorithm, encoding)
    if isinstance(asked, Nonadaptive):
        queries, decode = asked.queries, asked.decode
        return Nonadaptive((completeness(encoding, queries[0].tolerance), *queries), lambda answers: decode(_divided(answers[1:], answers[0])))

    def play() -> StatisticalPlay[R]:
        game, share = Game(asked), 0.0
        while game.queries is not None:
            if share:
                answers = yield game.queries
            else:
                whole, *rest = yield (completeness(encoding, game.queries[0].tolerance), *game.queries)
                share, answers = max(whole, LEAST), tuple(rest)
            game.send(_divided(answers, share))
        return game.result

    return Adaptive(play)


def _divided(answers: tuple[float, ...], share: float) -> tuple[float, ...]:
    return tuple(answer / max(share, LEAST) for answer in answers)
