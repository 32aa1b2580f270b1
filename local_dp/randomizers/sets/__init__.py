"""Randomizers of a set of items, alone or each with a number: the share of each item, and the mean
of its numbers."""
