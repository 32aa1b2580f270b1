"""What may be done to estimates beside decoding them, at a price in bias: named steps, none of which runs by default."""
