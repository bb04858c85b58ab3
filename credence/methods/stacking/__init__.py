"""Several models at once: each cross-validated, and all combined by stacking.

`models` says which networks, priors and likelihoods are tried; `folds` samples one of them by
chains that leave out a fold each; `method` weighs them; `candidates` tells what was tried.
"""
