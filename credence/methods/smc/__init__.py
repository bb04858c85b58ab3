"""Sequential Monte Carlo, on one network and on nested ones of growing width.

bridge       the step of particles between two targets
mutation     what moves particles, and how it is tuned
tempering    weigh, resample, move: the phases of a run
method       `SMC`
multilevel   `MLSMC`: Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class
             Neural Networks"
"""
