"""Two parties, each with half of the data: one message from one to the other, and the private distance of their bits."""
