"""Private optimisation by oracles that solve hard problems in practice: what they may be trusted with, and what it costs not to trust them."""
