"""A deterministic simulation of clients, network and server under faults: what happens is a list of
operations, drawn from a seed."""
