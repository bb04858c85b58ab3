"""Several models at once: each cross-validated, and all combined by stacking.

`models` says which networks, priors and likelihoods are tried; `folds` samples one of them by
chains that leave out a fold each; `left_out` has what these say of rows that they have not seen, by
which `method` weighs the models; `candidates` tells what was tried.
"""
