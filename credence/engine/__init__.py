"""Runs kernels: phases of compiled blocks, with progress, checkpoints, budgets and Ctrl-C.

driver        what a method talks to: `driver.phase(...)`
plan          which kernel moves the chains, what tunes it, for how long
phases        one phase under way, and the adapter that changes its settings between blocks
blocks        compiled steps of all chains, spread over the devices
programs      compiled programs, forgotten before there are too many
minibatches   shuffled epochs
streams       what is kept in place of draws
checkpoint    files that are written whole or not at all
progress      what a person sees
clock         seconds of computing and of compiling, apart
"""
