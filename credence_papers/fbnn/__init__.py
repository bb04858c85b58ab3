"""Calibrate, emulate, sample: the fast Bayesian neural network (FBNN).

Moslemi, Meng, Lan & Shahbaba, "Scaling up Bayesian neural networks with neural networks".

tables     fbnn (tables A1 and A2), fbnn_full (all rows of the large data sets), fbnn_converged
           (chains long enough to converge), fbnn_first_version (the first version's tables 1 and 2)
problems   their data and networks
methods    their rows
published, published_large   the numbers printed there

    credence experiment run fbnn --size laptop --problems boston --out fbnn
"""
