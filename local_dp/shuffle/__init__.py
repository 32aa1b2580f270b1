"""The shuffled model: reports lose their senders on the way. The role that removes them, and the
loss of each client."""
