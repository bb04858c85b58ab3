"""Changes the settings of a kernel between blocks, from what its chains have done.

windows           step size and metric in windows of a warm-up
gradient_metric   a metric from gradients, for minibatch dynamics
reference         the Gaussian reference of pCN
schedules         step sizes that follow a schedule
"""
