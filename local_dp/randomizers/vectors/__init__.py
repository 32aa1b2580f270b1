"""Randomizers of a vector in the cube or in the Euclidean ball, and estimates of its mean."""
