"""Private optimisation by oracles that prove, fail or claim: separator sets, RSPM, PRSMA."""
