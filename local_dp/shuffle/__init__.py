"""The shuffled model: reports that lose their senders on the way, what they then tell of a client, and who takes the senders away."""
