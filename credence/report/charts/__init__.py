"""Draws the charts of the report: each takes arrays and a name, and returns one `<svg>`."""
