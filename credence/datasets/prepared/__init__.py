"""Makes data sets that are simulated, derived from others, or read from a user's own files."""
