"""What the tests of the diagnostics share."""

import numpy as np
from tools.labels import draw_labels

# A wrong shape raises ValueError; where annotations are checked they refuse it first: TypeError.
REFUSED = (ValueError, TypeError)


def z_score(replicates, exact):
    """Standard errors between the mean of independent replicates and the exact value.

    A correct statistic passes at |z| < 4.5; a planted error must reach |z| > 8.
    """
    replicates = np.asarray(replicates)
    standard_error = replicates.std(ddof=1) / np.sqrt(len(replicates))
    return abs(replicates.mean() - exact) / standard_error


def random_probabilities(seed, num_points=200, num_classes=4):
    """Probabilities, labels that follow them, and sample weights."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(num_classes, 0.5), size=num_points)
    return p, draw_labels(rng, p), rng.uniform(0.1, 3, size=num_points)
