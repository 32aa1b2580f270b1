"""Answers to what is asked again and again, at a loss that is bounded for life."""
