"""Moves of reversible jump: each proposes another architecture and says its acceptance ratio."""
