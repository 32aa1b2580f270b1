"""Randomizers of a set of items, alone or each with a number: how many hold each item, and the mean of its numbers."""
