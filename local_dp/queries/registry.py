"""Every query by name: a request may ask these. Queries travel as a name and parameters, never as code."""

from local_dp.queries.query import Query
from local_dp.registry import Registry

QUERIES = Registry("query", "local_dp.queries", Query, ("queries/*.py", "learners/tabular.py", "masked/queries.py"))
