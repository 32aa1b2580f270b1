"""Randomizers of a number, and estimates of its mean."""
