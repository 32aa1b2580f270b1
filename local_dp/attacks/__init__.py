"""Attacks: what accurate answers give away. Each is a non-adaptive statistical-query algorithm, so that the one attack is put to every oracle there is."""
