"""Many answers at once from a table of weights: small databases, private multiplicative weights,
MWEM, DualQuery; and the baselines."""
