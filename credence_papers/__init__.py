"""The published experiments of five documents, run again: one folder a paper.

fbnn              calibrate, emulate, sample: tables of methods
multilevel        multilevel SMC over trace-class networks: tables, error against cost, prior rates
nonlinear         nonlinear MCMC: densities in the plane, small networks, photographs
transdimensional  how large should a network be: reversible jump over width and depth

study             what every study is, and the one loop that runs them all
cache             results that are there already

`credence` does not import this package: it finds the experiments by the entry point group
`credence.experiments` of pyproject.toml, where a package of your own can add others. They are
`credence.compare.Experiment`s, tables of methods on problems, or `credence_papers.study.Study`s.

    credence experiment list
    credence experiment run fbnn --size smoke --out fbnn

At laptop size minutes on a few cores, at paper size as published. `--seeds 5` repeats everything
with five seeds: chains, splits and simulated data.
"""
