"""Turns data into a log density: rows in, one number out.

data          inputs, targets and weights of observations, and parts of them
posterior     network, prior, likelihood and data as a log density of one flat position
rows          rows behind one protocol, in memory or not
stored_rows   rows that stay on disk and are read a chunk at a time
compiling     programs that run once or twice
chunks        many particles at once, in chunks that fit a processor's cache
"""
