"""Randomizers whose tally estimates how often each of k symbols is held."""
