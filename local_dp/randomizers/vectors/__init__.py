"""Randomizers of a vector, and estimates of its mean: in the cube, in the Euclidean ball."""
