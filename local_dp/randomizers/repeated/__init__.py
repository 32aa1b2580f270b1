"""Answers to questions that are asked again and again, at a loss that is bounded for life."""
