"""The test vectors of docs/wire.md: what a client in any language must send, compute and refuse.
`scripts/vectors` writes them."""
