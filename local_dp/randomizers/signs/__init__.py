"""Randomizers of signs: one answer of yes or no, many correlated ones, and signs at a point of the cube."""
