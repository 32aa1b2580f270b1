"""Every query by name: what a request may ask. Queries travel as a name and parameters, never as code."""

from collections.abc import Mapping

from local_dp.errors import InputError, RefusedError
from local_dp.queries.base import Query
from local_dp.queries.learner import LEARNER_QUERIES
from local_dp.queries.masked_rounds import ROUND_QUERIES
from local_dp.queries.masked_signs import MASKED_QUERIES
from local_dp.queries.parity import PARITY_QUERIES
from local_dp.queries.tables import TABLE_QUERIES
from local_dp.randomizers.base import Parameter

QUERIES: dict[str, type[Query]] = {kind.name: kind for kind in (*TABLE_QUERIES, *ROUND_QUERIES, *MASKED_QUERIES, *PARITY_QUERIES, *LEARNER_QUERIES)}


def build_query(name: str, params: Mapping[str, Parameter]) -> Query:
    """The query `name` with these parameters. Raises RefusedError("unknown-query" or "bad-parameters")."""
    kind = QUERIES.get(name)
    if kind is None:
        raise RefusedError("unknown-query", f"no query named {name!r}; there are {', '.join(QUERIES)}")
    try:
        return kind(**params)
    except (TypeError, InputError) as error:
        raise RefusedError("bad-parameters", f"{name} does not accept {dict(params)}: {error}") from error
