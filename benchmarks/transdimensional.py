"""Reversible jump over width: acceptance by move, and p(width | data) beside evidences of SMC.

    python benchmarks/transdimensional.py rates          acceptance and seconds, move by move
    python benchmarks/transdimensional.py xor [--variance 0.1] [--widths 8 16] [--out FOLDER]

The XOR clouds and the network are those of Berezowski, "Trans-dimensional inference over Bayesian
neural networks", section 5.5: 200 points, tanh, weights N(0, 1), softmax(z / 2), a uniform prior on
1 to 16 neurons, 16 chains of 1000 iterations, one starting at each width. `xor` runs SMC at every
width (or those listed) besides, and writes laptop.json and widths.svg. Seconds have all phases,
compilation apart.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from rows import commit

LARGEST = 16
PUBLISHED_MODES = {0.015: 7, 0.1: 8}


def xor_posterior(width: int, variance: float) -> Any:
    """The posterior given the clouds, of a network with `width` hidden neurons."""
    from credence import Posterior, datasets
    from credence.models import MLP, Categorical, Gaussian

    prior, likelihood = Gaussian(scaling="unit"), Categorical(0.5)
    return Posterior(MLP(2, (width,)), prior, likelihood, datasets.xor(variance=variance))


def regression_posterior(noise_std: float = 0.1, width: int = LARGEST) -> Any:
    """100 points of a curve of one input, with known noise."""
    from credence import Posterior
    from credence.models import MLP, Gaussian, Normal

    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(100, 1))
    y = np.sin(2 * x[:, 0]) + 0.5 * x[:, 0] + noise_std * rng.normal(size=100)
    return Posterior(MLP(1, (width,)), Gaussian(scaling="unit"), Normal(noise_std), (x, y))


def jumps(posterior: Any, **settings: Any) -> tuple[Any, dict[str, float]]:
    """An ensemble of 16 chains; shares of jumps accepted, and seconds."""
    from credence.methods import Transdimensional

    defaults = {"num_chains": 16, "num_draws": 200, "num_warmup": 300}
    ensemble = Transdimensional(**defaults | settings).run(0, posterior)
    scalars, seconds = ensemble.scalars, ensemble.cost.seconds
    return ensemble, {
        "rate": float(scalars["num_jumps_accepted"].sum() / scalars["num_jumps"].sum()),
        "compile": seconds["compile"],
        "run": ensemble.cost.total_seconds - seconds["compile"],
        "sample": seconds["sample"],
    }


def rates() -> None:
    """Print acceptance, effective size of the width per second of sampling, and R-hat."""
    from credence.methods.transdimensional.architecture.posterior import width_posterior

    cases = {"xor": xor_posterior(LARGEST, 0.015), "regression": regression_posterior()}
    print(f"{'data':<12}{'move':<14}{'accepted':>9}{'ESS/s':>8}{'R-hat':>7}{'sample s':>10}")
    for name, posterior in cases.items():
        moves: dict[str, dict[str, Any]] = {
            each: {"moves": (each,)} for each in ("plain", "informed", "split_merge")
        }
        for steps in (3, 10, 30):
            moves[f"annealed {steps}"] = {
                "moves": ("annealed",), "num_temperatures": steps, "num_jumps": 2
            }  # fmt: skip
        if name == "regression":
            moves["collapsed"] = {"moves": ("collapsed",)}
        for label, settings in moves.items():
            ensemble, found = jumps(posterior, **settings)
            widths = width_posterior(ensemble.scalars["width"], LARGEST)
            per_second = widths.ess / found["sample"]
            print(
                f"{name:<12}{label:<14}{found['rate']:>9.3f}{per_second:>8.1f}{widths.rhat:>7.3f}"
                f"{found['sample']:>10.1f}",
                flush=True,
            )


def xor(variance: float, out: Path, particles: int, listed: list[int]) -> None:
    """p(width | data) by reversible jump and by evidences, with standard errors.

    Both are conditional on the listed widths.
    """
    from credence.methods import SMC
    from credence.methods.evidence import LogEvidence
    from credence.methods.transdimensional.architecture.posterior import width_posterior

    ensemble, found = jumps(
        xor_posterior(LARGEST, variance),
        num_draws=1000,
        initial_widths=tuple(range(1, LARGEST + 1)),
    )
    widths = width_posterior(ensemble.scalars["width"], LARGEST)
    print(widths, found, sep="\n", flush=True)
    log_evidence, errors = [], []
    start = time.perf_counter()
    for width in listed:
        smc = SMC(num_particles=particles, num_runs=8)
        evidence = LogEvidence.of(smc.run(width, xor_posterior(width, variance)))
        assert evidence is not None
        log_evidence.append(evidence.nats)
        errors.append(evidence.standard_error)
        print(
            f"{width}: log evidence {evidence.nats:.2f} +- {evidence.standard_error:.2f}",
            flush=True,
        )
    probabilities = np.exp(log_evidence - np.logaddexp.reduce(log_evidence))
    rows = np.array(listed) - 1
    visited = np.array(widths.probabilities)[rows]
    result = {
        "commit": commit(),
        "particles": particles,
        "variance": variance,
        "widths": listed,
        "all_widths": widths.probabilities,
        "reversible_jump": (visited / visited.sum()).tolist(),
        "reversible_jump_errors": conditional_errors(
            visited, np.array(widths.standard_errors)[rows]
        ).tolist(),
        "rhat": widths.rhat,
        "ess": widths.ess,
        **found,
        "log_evidence": log_evidence,
        "log_evidence_errors": errors,
        "evidence": probabilities.tolist(),
        "evidence_seconds": time.perf_counter() - start,
    }
    result["evidence_errors"] = evidence_errors(result).tolist()
    result["worst_z"] = worst_z(result)
    out.mkdir(parents=True, exist_ok=True)
    (out / "laptop.json").write_text(json.dumps(result, indent=2), encoding="utf-8")
    chart(result, out / "widths.svg")
    print(f"worst z of a width {result['worst_z']:.1f}; {result['evidence_seconds']:.0f} s of SMC")


def conditional_errors(probabilities: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Standard errors of probabilities among some widths, from those among all.

    Each error says how many independent draws it is worth; a share of them have these widths.
    """
    total = probabilities.sum()
    share = probabilities / total
    draws = probabilities * (1 - probabilities) / errors**2
    return np.sqrt(share * (1 - share) / (draws * total))


def evidence_errors(result: dict[str, Any]) -> np.ndarray:
    """Standard errors of the probabilities that evidences give: errors of logs are independent."""
    p, error = np.array(result["evidence"]), np.array(result["log_evidence_errors"])
    slopes = np.diag(p) - np.outer(p, p)
    return np.sqrt(slopes**2 @ error**2)


def worst_z(result: dict[str, Any]) -> float:
    """The largest |z| between the two answers, over the widths that have at least 1 %."""
    difference = np.array(result["reversible_jump"]) - np.array(result["evidence"])
    jump_errors = np.array(result["reversible_jump_errors"])
    is_common = np.array(result["evidence"]) > 0.01
    error = np.hypot(jump_errors, result["evidence_errors"])
    return float(np.max(np.abs(difference / error)[is_common]))


def chart(result: dict[str, Any], path: Path) -> None:
    """Both answers and the published mode."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    width = np.array(result["widths"])
    axes.errorbar(
        width - 0.12, result["reversible_jump"], 2 * np.array(result["reversible_jump_errors"]),
        fmt="o", label="reversible jump", color="#1b6ca8",
    )  # fmt: skip
    axes.errorbar(
        width + 0.12, result["evidence"], 2 * np.array(result["evidence_errors"]),
        fmt="s", mfc="none", label="SMC evidence of each width", color="#c0392b",
    )  # fmt: skip
    mode = PUBLISHED_MODES.get(result["variance"])
    if mode is not None:
        axes.axvline(mode, color="0.6", linestyle="--", label=f"published mode, {mode}")
    axes.set(xlabel="hidden neurons", ylabel="p(width | data)", xticks=width, ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside upper center", ncols=3)
    figure.savefig(path)


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("rates", "xor"))
    parser.add_argument("--variance", type=float, default=0.015)
    parser.add_argument("--particles", type=int, default=1000)
    parser.add_argument("--widths", type=int, nargs="+", default=list(range(1, LARGEST + 1)))
    parser.add_argument("--out", type=Path, default=Path("xor-widths"))
    options = parser.parse_args()
    import credence

    credence.configure()
    if options.what == "rates":
        rates()
    else:
        xor(options.variance, options.out, options.particles, options.widths)


if __name__ == "__main__":
    main()
