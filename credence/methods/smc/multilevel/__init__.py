"""Multilevel SMC after Chada, Jasra, Law & Singh: nested networks of growing width.

nested       a coarse network is the leading block of a finer one
increments   how much a network still changes as it widens
allocation   how many particles each level gets
proposal     the law from which a level's new weights are drawn
reach        how many particles are left when they are weighed to a finer network
coupling     from one level to the next
levels       programs and targets of all levels
method       `MLSMC`
randomised   no finest level: a random number of them
"""
