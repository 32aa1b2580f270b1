"""Marginals of binary tables: how many records have each value of some columns together, from one release or many."""
