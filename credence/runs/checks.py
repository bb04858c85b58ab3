"""Settings of the command line, checked before anything is read into memory or compiled.

What knows the names is imported by the functions that need it.
"""

from credence.errors import InputError
from credence.runs.folder import FitSettings


def check_settings(settings: FitSettings, task: str) -> None:
    """Refuse bad settings of a fit.

    Args:
        task: whose likelihoods are known; "auto" knows them all.
    Raises:
        InputError: with the setting's name.
    """
    from credence import methods
    from credence.estimators.checks import named
    from credence.models import LIKELIHOODS, MLP, PRIORS

    known = {
        "regression": LIKELIHOODS,
        "classification": ("categorical",),
        "auto": (*LIKELIHOODS, "bernoulli", "categorical"),
    }
    named("likelihood", settings.likelihood, dict.fromkeys(("auto", *known[task])))
    named("prior", settings.prior, PRIORS)
    methods.check_name(settings.method)
    MLP(1, settings.hidden, settings.activation)
    check_seed_and_time(settings.seed, settings.max_seconds)
    for name in ("num_draws", "num_chains"):
        if getattr(settings, name) < 1:
            raise InputError(
                f"--{name.replace('_', '-')} must be >= 1, got {getattr(settings, name)}."
            )
    if not 0 < settings.test_fraction < 1:
        raise InputError(
            f"--test-fraction must be between 0 and 1, got {settings.test_fraction}; 0.2 is usual."
        )


def check_seed_and_time(seed: int, max_seconds: float | None) -> None:
    """Refuse a seed or a time budget out of range.

    Raises:
        InputError: with its name.
    """
    if not 0 <= seed < 2**32:
        raise InputError(f"--seed must be between 0 and {2**32 - 1}, got {seed}.")
    if max_seconds is not None and not max_seconds > 0:
        raise InputError(f"--max-seconds must be > 0, got {max_seconds}.")
