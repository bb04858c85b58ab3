"""Sequential Monte Carlo, on one network and on nested ones of growing width.

bridge       the step of particles between two targets
clouds       what is true of a cloud however it moves: weights, temperatures, descent
mutation     what moves particles, and how it is tuned
tempering    weigh, resample, move: the phases of a run
budget       as many particles as a time budget affords
method       `SMC`
multilevel   `MLSMC`: Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class
             Neural Networks"
"""
