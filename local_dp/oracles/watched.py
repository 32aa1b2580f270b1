"""An oracle that is watched: one idiom for whatever counts, times, records or checks what another oracle is asked and answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from local_dp.interaction import A, Oracle, Q


def _nothing(*_: Any) -> None:
    pass


@dataclass(frozen=True)
class Watched(Generic[Q, A]):
    """Passes queries and answers on unchanged, and shows every round to `before(queries)` and `after(queries, answers)`, which may raise."""

    oracle: Oracle[Q, A]
    before: Callable[[tuple[Q, ...]], object] = _nothing
    after: Callable[[tuple[Q, ...], tuple[A, ...]], object] = _nothing

    def answer(self, queries: tuple[Q, ...]) -> tuple[A, ...]:
        self.before(queries)
        answers = self.oracle.answer(queries)
        self.after(queries, answers)
        return answers
