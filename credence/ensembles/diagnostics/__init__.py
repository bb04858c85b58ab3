"""Is the sampler to be believed, are the predictions honest, and what did they cost?

Pure functions of numpy arrays that know nothing of networks; shapes are in the order
`chain draw point output`, and `member` is chain and draw flattened.

    convergence     R-hat, bulk and tail ESS, MCSE (all ArviZ's) and the verdict, `assess`
    starts          whether further starts settled in a mode that no chain has visited
    calibration     reliability diagram, ECE, MCE of class probabilities
    classification  accuracy, top-k, Brier, log loss, AUROC, precision and recall against confidence
    recalibration   conformal intervals and tempered probabilities
    regression      RMSE, MAE, NLL, coverage and width of intervals, PIT
    crps            of a Normal, of a sample, of a mixture of Normals
    entropy         predictive entropy and variance, split into aleatoric and epistemic
    importance      Pareto-smoothed weights and their tail index, Hellinger distance
    stacking        leave-one-out scores, and weights of models that predict together
    discrepancy     unbiased MMD² between two samples
    cost            evaluations, FLOPs and seconds by phase; ESS per second and speed-up

Importing this package loads nothing heavier than numpy; SciPy, scikit-learn and ArviZ are imported
by the functions that need them.
"""

from credence.ensembles.diagnostics.calibration import (
    ReliabilityDiagram,
    ece,
    mce,
    reliability_diagram,
)
from credence.ensembles.diagnostics.classification import (
    PrecisionRecall,
    accuracy,
    auroc,
    brier,
    log_loss,
    precision_recall,
    top_k_accuracy,
)
from credence.ensembles.diagnostics.convergence import (
    Convergence,
    assess,
    ess_bulk,
    ess_tail,
    mcse_mean,
    rhat,
)
from credence.ensembles.diagnostics.cost import (
    Cost,
    ess_per_second,
    format_speed_up,
    speed_up,
)
from credence.ensembles.diagnostics.crps import crps_normal, crps_normal_mixture, crps_sample
from credence.ensembles.diagnostics.discrepancy import (
    gaussian_kernel,
    inverse_multiquadric_kernel,
    mmd2,
)
from credence.ensembles.diagnostics.entropy import (
    Decomposition,
    decompose_entropy,
    decompose_variance,
)
from credence.ensembles.diagnostics.importance import hellinger, pareto_smoothed
from credence.ensembles.diagnostics.regression import (
    PITSummary,
    interval_coverage,
    mae,
    mean_interval_width,
    nll,
    pit_summary,
    rmse,
)
from credence.ensembles.diagnostics.stacking import (
    LeaveOneOut,
    leave_one_out,
    stacking_weights,
)
from credence.ensembles.diagnostics.starts import Starts, compare_starts, with_starts

__all__ = [
    "Convergence",
    "Cost",
    "Decomposition",
    "LeaveOneOut",
    "PITSummary",
    "PrecisionRecall",
    "ReliabilityDiagram",
    "Starts",
    "accuracy",
    "assess",
    "auroc",
    "brier",
    "compare_starts",
    "crps_normal",
    "crps_normal_mixture",
    "crps_sample",
    "decompose_entropy",
    "decompose_variance",
    "ece",
    "ess_bulk",
    "ess_per_second",
    "ess_tail",
    "format_speed_up",
    "gaussian_kernel",
    "hellinger",
    "interval_coverage",
    "inverse_multiquadric_kernel",
    "leave_one_out",
    "log_loss",
    "mae",
    "mce",
    "mcse_mean",
    "mean_interval_width",
    "mmd2",
    "nll",
    "pareto_smoothed",
    "pit_summary",
    "precision_recall",
    "reliability_diagram",
    "rhat",
    "rmse",
    "speed_up",
    "stacking_weights",
    "top_k_accuracy",
    "with_starts",
]
