"""What may be done to estimates at a price in bias: named steps. No step runs by default."""
