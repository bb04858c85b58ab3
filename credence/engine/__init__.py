"""Runs kernels: phases of compiled blocks, with progress, checkpoints, budgets and Ctrl-C.

driver        what a method talks to: `driver.phase(...)`
phases        one phase under way, and the adapter that changes its settings between blocks
blocks        compiled steps of all chains, spread over the devices
minibatches   shuffled epochs
checkpoint    files that are written whole or not at all
progress      what a person sees
clock         seconds of computing and of compiling, apart
"""
