"""Statistical-query learners, each written once: the same algorithm runs on an exact, an
adversarial, a local or a curated oracle."""
