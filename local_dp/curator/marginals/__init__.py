"""Marginals of binary tables: how many records have each combination of values of some columns,
from one release or many."""
