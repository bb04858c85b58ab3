"""Changes the settings of a kernel between blocks, from what its chains have done.

tunable_kernels   the table of kernels that other methods move with
windows           step size and metric in windows of a warm-up
gradient_metric   a metric from gradients, for minibatch dynamics
reference         the Gaussian reference of pCN
ladder            powers, step sizes and metrics of a ladder of temperatures
settling          a warm-up that ends when predictions stop getting better
schedules         step sizes that follow a schedule
"""
