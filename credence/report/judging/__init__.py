"""Judges a run on rows it never saw: what was found, what chance allows, and the verdict."""
