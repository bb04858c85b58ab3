"""Calibrate, emulate, sample: the fast Bayesian neural network (FBNN).

Moslemi, Meng, Lan & Shahbaba, "Scaling up Bayesian neural networks with neural networks".

tables     fbnn (tables A1 and A2), fbnn_converged (the same with chains long enough to converge),
           fbnn_first_version (tables 1 and 2 of the first version)
published  the numbers printed there

    credence experiment run fbnn --size laptop --problems boston --out fbnn
"""
