"""Calibrate, emulate, sample: the experiments of the fast Bayesian neural network (FBNN).

Moslemi, Meng, Lan & Shahbaba, "Scaling up Bayesian neural networks with neural networks", tables A1
and A2, and tables 1 and 2 of its first version.
"""

from dataclasses import replace

from credence.compare.specs import Experiment
from credence_papers.fbnn.methods import CONVERGED, EXACT, METHODS
from credence_papers.fbnn.problems import FIRST_VERSION, FULL, ROW_LADDER, TABLES

PAPER_TITLE = (
    'Moslemi, Meng, Lan & Shahbaba, "Scaling up Bayesian neural networks with neural networks"'
)

SPEED_UPS = (
    "Published speed-ups compare chains that were not tested for convergence; ours count only "
    "between chains with R-hat below 1.05 in function space, per second of all phases, "
    "compilation and training included."
)
REASONS = (
    "Methods share one likelihood, one split and one prior, N(0, 1) for every weight as the paper "
    "says, with three exceptions: draws with the public code's SGHMC, of its first 200 and of the "
    "calibrations by it, have the prior of that code, precisions ~ Gamma(10, 10); BNN-Lasso "
    "multiplies the prior's precision by what its evidence likes best; BNN-MC-Dropout takes the "
    "rate that is best on rows held out. The paper states neither its split nor its noise, and its "
    "emulated chains had another prior and other data than its baseline.",
    "FBNN (SGHMC-pCN) has the steps, the batches and the optimiser of the public code, and the "
    "emulators of the paper's table 2. The code itself has networks with ReLUs; its emulator "
    "learns the sigmoids of the outputs from 150 of 200 draws, for 200 epochs at most and 10 "
    "without improvement; its pCN starts at the 1000th draw of SGHMC and leaves out 20. Ours "
    "learns the outputs from 160 draws for 1000 epochs, and starts at the last of the 200.",
    "The public code computes its effective sample size as number of draws over ESS, so that "
    "large published numbers mean bad chains; ours is ArviZ's bulk ESS, of all chains together.",
    SPEED_UPS,
    "Published coverages far below 95 % are close to coverage_95_credible, the interval of the "
    "noise-free prediction; they also differ by exactly 10 points between the paper's versions.",
    "Published ECE of .24 to .67 where networks are right 69 to 94 % of the time is not "
    "credible; ours is that of the top label, with two variants beside it.",
    "'Lasso' in the paper is the Laplace approximation; it is refused where the posterior has no "
    "mode to speak of, as with many weights, few rows and a learnt noise.",
    "The paper names ReLU for its emulator only; our networks are smooth (tanh), because Laplace "
    "and HMC need derivatives.",
    "The paper collects 2000 draws of one chain; ours are 4 chains of 500 (laptop) or of 2000 "
    "(paper), because one chain cannot be tested. With the public code's steps they are 4 chains "
    "of 2000 at both sizes.",
)

FBNN = Experiment(
    name="fbnn",
    description="All methods of the FBNN paper on five of its data sets, its numbers beside ours.",
    source=f"{PAPER_TITLE}, tables A1 and A2",
    baseline="BNN-SGHMC",
    methods=METHODS,
    reasons=REASONS,
    problems=TABLES,
)
FBNN_FULL = replace(
    FBNN,
    name="fbnn_full",
    description="All methods of the FBNN paper on all rows of its large data sets.",
    methods=(*METHODS, *EXACT),
    problems=FULL,
)
FBNN_CONVERGED = replace(
    FBNN,
    name="fbnn_converged",
    description="The FBNN paper's speed-up over SGHMC, of exact chains that are long enough to "
    "converge, with few rows and with all.",
    baseline=CONVERGED[0].label,
    methods=CONVERGED,
    reasons=(
        "Published speed-ups are of chains that follow an emulator; these chains follow the "
        "posterior itself, and compute gradients of all rows.",
        SPEED_UPS,
        "Methods share one likelihood, one split and one prior, N(0, 1) for every weight as the "
        "paper says. SGHMC sees all rows at every step, 1024 or 32 of them; its draws are not "
        "exact, because its steps are not tested.",
    ),
    problems=ROW_LADDER,
)
FBNN_FIRST_VERSION = Experiment(
    name="fbnn_first_version",
    description="The small simulated problems of the FBNN paper's first version.",
    source=f"{PAPER_TITLE}, first version, tables 1 and 2",
    baseline="BNN-SGHMC",
    methods=METHODS,
    reasons=REASONS,
    problems=FIRST_VERSION,
)
