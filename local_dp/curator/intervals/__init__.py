"""All interval counts of an ordered domain at once: trees of counts made consistent, and the square-root factorization of prefix sums."""
