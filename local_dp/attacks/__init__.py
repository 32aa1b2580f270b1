"""Attacks on accurate answers. Each is a non-adaptive statistical-query algorithm, so one attack runs against every oracle."""
