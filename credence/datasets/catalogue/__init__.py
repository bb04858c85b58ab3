"""Knows the named data sets: what they are, where they come from, how they are read.

specs      what is known of a data set
arrays, bundled, tables   the lists
sources    the folder CREDENCE_DATA, scikit-learn, OpenML
readers    files to `Dataset`
registry   find one, load it, list them all
"""
