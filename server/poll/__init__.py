"""A poll: people answer on their own phones, and nobody has to trust the one who asks."""
