"""Randomizers of signs: one yes/no answer, many correlated ones, and signs at points of the
cube."""
