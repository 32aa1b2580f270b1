"""k counts of the same records, of which one record may change all: pure noise in the shape of the cube, noise on each count, normal noise."""
