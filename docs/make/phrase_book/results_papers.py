"""Numbers in the sentences and tables of docs/results/papers.md, in the order of its sections."""

from collections.abc import Iterator
from typing import Any

from architectures import PUBLISHED, likeliest_share, published_rows
from faults import size, without_fault
from kept import kept, rows_by, rows_by_label
from phrase_book.results_fbnn import BATCHES, HMC, MCLMC, NUTS, SGHMC
from phrase_book.results_interacting import COLD, distance_without_jacobian
from phrase_book.results_multilevel import (
    DESIGN,
    SPIRAL,
    best_of,
    published,
    slope_of,
    with_interval,
)
from phrase_book.results_multilevel_tables import read_by
from phrases import Phrase, ends, given, made, share
from two_states import means

from credence.datasets.prepared.sentence_models import MINILM, MPNET
from credence.html.wording import number

EMULATED = "FBNN (SGHMC-pCN)"
TARGETS = ("circle", "rings", "grid")


def phrases() -> Iterator[Phrase]:
    """The phrases of the page; the first two cells of its tables are claims and published."""
    yield from given(
        "1.00 means that they cannot be told apart, and we ask for less than 1.05",
        "200 rows and noise 0.01 against 100 and 0.1",
        "at 0.01 the steps between levels are [100 times as large](multilevel.md#when-it-pays) as "
        "at 0.1",
        "takes 0.003 nats from a choice",
        "0.15 from one that is 4 standard deviations below the better value, and 2.8 from",
        "chains with R-hat below 1.05",
        "All chains had a limit of 50 seconds",
        "That SGHMC had friction .1",
        "every chain had 60 seconds",
        "is infinite; 0.7 is the limit",
        "Published ECEs are .24 to .67 for accuracies of 69 to 94 %",
        "85.3 to 75.3 % (SGHMC), 89.3 to 79.3 % (pCN) and 71.1 to 81.1 % (FBNN)",
        "± .01 over chains",
        "with outputs scaled by .1 (a) or .5 (b)",
        "noise variance 1 (a) or .8 (b)",
        'Boston\'s "RMSE", .215 to .245',
    )
    yield from of_multilevel()
    yield from of_fbnn()
    yield from of_nonlinear()
    yield from of_transdimensional()
    yield from of_faults()


def of_multilevel() -> Iterator[Phrase]:
    """Tell what the multilevel experiments give, in the order of the table."""
    yield from of_prior_rates()
    yield from of_savings()
    yield from of_tables()


def of_prior_rates() -> Iterator[Phrase]:
    """Tell the slopes under both kinds of prior."""
    slopes = {(row["panel"], row["name"]): row["slope"] for row in kept("prior_rates")["curves"]}
    smooth = [slope for (_, name), slope in slopes.items() if name == "alpha = 2"]
    yield made("[{:.2f} to {:.2f}][rates], one or two layers", max(smooth), min(smooth))
    loose = [
        slopes[f"Independent weights: {layers}", "variance 1 / width"]
        for layers in ("one relu layer", "two relu layers", "one tanh layer", "two tanh layers")
    ]
    yield made("[{:.2f}, {:.2f} with ReLU; {:.2f}, {:.2f} with tanh][rates]", *loose)


def of_savings() -> Iterator[Phrase]:
    """Tell what one level costs over several, and how their cost grows."""
    regression, easy, rough, wide = map(published, DESIGN)

    def saving(problem: dict[str, Any]) -> Iterator[str]:
        for measure in ("flops", "seconds"):
            yield from with_interval(problem["fits"][measure]["ratio_widest"])

    yield made("At α = 2 it is {} times by work in the digits and", next(saving(rough)))
    yield made("in the digits and {} times in the regression", next(saving(wide)))
    yield made("widths 8 and 128: {} ({} to {}); by the clock {} ({} to {})", *saving(regression))
    spiral = tuple(saving(published(SPIRAL)))
    yield made("[α = 3: {} ({} to {}); by the clock {} ({} to {})][published-design]", *spiral)
    work = with_interval(wide["fits"]["flops"]["ratio_widest"])
    yield made("α = 2, widths 64 and 256: {} ({} to {})]", *work)
    yield made("[α = 3: {} ({} to {}); by the clock {} ({} to {}). α = 2", *saving(easy))
    yield made("α = 2: {} ({} to {}); {} ({} to {})][published-design]", *saving(rough))
    yield made("[α = 3: {} ({} to {}) in the regression", *slope_of(regression, "flops"))
    yield made("in the regression, {} ({} to {}) in the digits; α", *slope_of(easy, "flops"))
    yield made("α = 2: {} ({} to {}) in the regression, ", *slope_of(wide, "flops"))
    yield made("in the regression, {} ({} to {}) in the digits]", *slope_of(rough, "flops"))
    yield made("one level costs [{} times ({} to {})]", *best_of(wide))
    yield made("α = 3 it is [{} times ({} to {})]", *best_of(regression))
    yield made("and in the spiral [{} times ({} to {})]", *best_of(published(SPIRAL)))
    yield made("[{} ({} to {}) and", *best_of(easy))
    yield made("and {} times ({} to {})][published-design]: these intervals", *best_of(rough))
    nominal = regression["fits"]["nominal"]["ratio_widest"]["value"]
    yield made("[{} in place of {} at α = 3]", number(nominal, 2), next(saving(regression)))
    nominal = easy["fits"]["nominal"]["ratio_widest"]["value"]
    yield made("and {} in place of {} in the digits", number(nominal, 2), next(saving(easy)))


def of_tables() -> Iterator[Phrase]:
    """Tell accuracies and doubts in use."""
    reviews, digits = rows_by_label("imdb", "tfidf", "laptop"), rows_by_label("mnist_ood")
    ways = ("Coarse (SMC on half of the inputs)", "Importance sampling", "+ mutated increment")
    right = [share(reviews[way]["accuracy"]) for way in ways]
    two = rows_by_label("imdb_two_models", "minilm_mpnet", "paper")
    three = ("Coarse (SMC on the small model)", *ways[1:])
    yield made("[{}, {}, {}][two-models]", *(share(two[way]["accuracy"]) for way in three))
    yield made("they have [{}][two-models] there", share(read_by(MINILM, MPNET)["accuracy"]))
    yield made("[{}, {}, {}][imdb] with 5,000 reviews", *right)
    yield made("[about {:.0f} of 30 particles]", 30 * reviews["Importance sampling"]["ess_share"])
    four = ("MAP", "Deep ensemble", "SMC", "MLSMC")
    right = [share(digits[label]["accuracy"]) for label in four]
    yield made("[MAP {}, deep ensemble {}, SMC {}, MLSMC {}][ood]", *right)
    doubts = [share(digits[label]["epistemic_others"]) for label in four[1:]]
    yield made("size; [{}, {}, {}][ood] | in part", *doubts)
    yield made("[{}, {}, {}, {}][ood] | no", *(share(digits[name]["ood_auroc"]) for name in four))


def of_fbnn() -> Iterator[Phrase]:
    """Tell errors and coverages of emulated chains beside SGHMC, and speed-ups."""
    yield from of_second_version()
    yield from of_speed_ups()
    yield from of_first_version()


def of_second_version() -> Iterator[Phrase]:
    """Tell what the second version's tables give."""
    yield from of_numbers()
    yield from of_labels()


def of_numbers() -> Iterator[Phrase]:
    """Tell errors and coverages of Boston and wine."""
    boston, wine = (rows_by_label("fbnn", name) for name in ("boston", "wine"))
    yield made("[{:.0f}; {:.1f}](fbnn.md#boston)", *pair(boston, "mse"))
    yield made("[{}; {}](fbnn.md#wine)", *map(share, pair(wine, "mse")))
    for rows, name in ((boston, "boston"), (wine, "wine")):
        held = percent(rows, "coverage_95")
        yield made(f"{{:.0f}} %; [{{:.1f}} %](fbnn.md#{name}) | no", *held)
    ensemble, dropout = "Ensemble-DNN", "BNN-MC-Dropout"
    others = [wine[label]["mse"] for label in (ensemble, dropout)]
    yield made("[{} and {}](fbnn.md#wine)", share(others[0]), share(others[1], 2))
    best = min(row["mse"] for row in boston.values())
    assert best == boston[dropout]["mse"], "the best of all is MC dropout"
    yield made(
        "[{:.1f}](fbnn.md#boston) and {:.0f}; the best of all is {:.0f} |",
        boston[ensemble]["mse"],
        boston[dropout]["mse"],
        best,
    )


def of_labels() -> Iterator[Phrase]:
    """Tell accuracies and calibration of Adult, MNIST and CelebA."""
    adult, mnist, celeba = (
        rows_by_label("fbnn_full", name) for name in ("adult", "mnist", "celeba")
    )
    yield made("[{:.1f} %; {:.1f} %](fbnn.md#adult)", *percent(adult, "accuracy"))
    yield made("SGHMC has .574 in print and [{} in", share(adult[SGHMC]["ece"], 5))
    yield made("[{:.1f} %; {:.1f} %](fbnn.md#celeba)", *percent(celeba, "accuracy"))
    emulated, sghmc = pair(celeba, "ece")
    yield made("[{}; {}](fbnn.md#celeba)", share(emulated), share(sghmc, 5))
    assert mnist[EMULATED]["status"] == "failed", "ended with an error"
    yield made("[{:.1f} % by SGHMC](fbnn.md#mnist)", 100 * mnist[SGHMC]["accuracy"])
    public = mnist[f"{EMULATED} with the public code's emulator"]
    yield made("public code [{:.1f} %](fbnn.md#mnist)", 100 * public["accuracy"])
    chains = [row for label, row in mnist.items() if label.startswith("FBNN")]
    right = [row["accuracy"] for row in chains if row["status"] == "done"]
    assert len(chains) == 5, "of five emulated chains"
    second, first = sorted(right)[-2:]
    assert round(first, 2) == round(second, 2), "two are right for"
    yield made("two of five emulated chains are right for {:.0f} %", 100 * first)


def of_speed_ups() -> Iterator[Phrase]:
    """Tell how much faster converged chains that emulate nothing are."""
    adult, celeba = (rows_by_label("fbnn_converged", name) for name in ("adult", "celeba"))
    hmc, mclmc = ([rows[label]["speed_up"] for rows in (adult, celeba)] for label in (HMC, MCLMC))
    yield made("[{:.2f} times (Adult) and {:.2f} times (CelebA)]", *hmc)
    yield made("[{:.2f} and {:.2f} times][speed-ups] by MCLMC", *mclmc)
    unsettled = [rows[BATCHES]["max_rhat_function"] for rows in (adult, celeba)]
    yield made("([R-hat {:.3f} and {:.3f}][speed-ups])", *unsettled)


def of_first_version() -> Iterator[Phrase]:
    """Tell what the first version's simulated data give."""
    name = "fbnn_first_version"
    numbers, labels = (
        rows_by_label(name, f"simulated_{kind}") for kind in ("regression", "classification")
    )
    yield made("[{:,.0f}; {:.2f}](fbnn_first_version.md#", *pair(numbers, "mse"))
    yield made("[{:.1f} %](fbnn_first_version.md#simulated_regression); {:.0f} %",
               *percent(numbers, "coverage_95"))  # fmt: skip
    yield made("[{:.1f} %; {:.1f} %](fbnn_first", *percent(labels, "accuracy"))
    again = rows_by("fbnn_as_published", "problem", label=EMULATED)["simulated_classification"]
    yield made("and [{} in another run][ces]", share(again["accuracy"]))
    blind, *exact = (labels[label] for label in ("FBNN (pCN-SGHMC)", HMC, NUTS, MCLMC))
    yield made(
        "[FBNN (pCN-SGHMC) has {:.3f} times, HMC {:.2f}, NUTS {:.2f}, MCLMC {:.2f}]",
        blind["speed_up"],
        *(row["speed_up"] for row in exact),
    )
    yield made(
        "accuracy {:.0f} % has [{:.3f}]", 100 * blind["accuracy"], blind["max_rhat_function"]
    )


def pair(rows: dict[str, dict[str, Any]], score: str) -> tuple[float, float]:
    """A score of the emulated chain, and of SGHMC."""
    return rows[EMULATED][score], rows[SGHMC][score]


def percent(rows: dict[str, dict[str, Any]], score: str) -> tuple[float, float]:
    """The same in per cent."""
    emulated, sghmc = pair(rows, score)
    return 100 * emulated, 100 * sghmc


def of_nonlinear() -> Iterator[Phrase]:
    """Tell distances in the plane, and scores of photographs and small networks."""
    yield from of_plane()
    yield from of_photographs()
    yield from of_networks()


def of_plane() -> Iterator[Phrase]:
    """Tell squared distances from the three densities, a thousand times as large."""
    plane = {(row["target"], row["sampler"]): row for row in kept("densities")["densities"]}

    def distances(sampler: str, *targets: str) -> Iterator[float]:
        for target in targets:
            row = plane[target, sampler]
            yield from (1000 * row["mmd2"], 1000 * row["mmd2_error"])

    three = ("MALA", "BG", "AR")
    on = {name: [n for each in three for n in distances(each, name)] for name in TARGETS}
    told = "{:.2f} ± {:.2f}"
    yield made(f"[MALA {told}, BG {told}, AR {told}][plane]", *on["rings"])
    for name, claim in (("grid", 'curves, "particularly evident"'), ("circle", "curves")):
        words = f"MALA on the {name} | {claim} | not yet at this size; [{told}, {told}, {told}]"
        yield made(words, *on[name])
    yield made(
        f"linear [{told}, {told} and {told}][plane] on circle",
        *distances("MALA, faulty as published", *TARGETS),
    )
    yield made(
        f"AR [{told}, {told} and {told}][plane]", *distances("AR, faulty as published", *TARGETS)
    )
    yield made("[end at MMD² = {}]", share(distance_without_jacobian(), 4))
    yield made(
        "truth .7: BG {}, {}, {} for 2, 5, 20 particles",
        *(share(mean, 4) for mean in means("bg")),
    )


def of_photographs() -> Iterator[Phrase]:
    """Tell accuracies and calibration errors of a softmax on features."""
    rows = {row["label"]: row for row in kept("cifar10_features")["contenders"]}
    three = [rows[label] for label in ("SGLD (linear)", "Nonlinear (BG)", "Nonlinear (AR)")]
    right = [share(row[name], 4) for row in three for name in ("accuracy", "accuracy_error")]
    yield made("[{} ± {} linear, {} ± {} BG, {} ± {} AR][features]", *right)
    cold = rows[COLD]
    off = [100 * row["ece_all_classes"] for row in (*three, cold)]
    errors = [100 * row["ece_all_classes_error"] for row in (*three, cold)]
    assert all(0.004 < each < 0.015 for each in errors), "± .01"
    yield made(
        "[{} linear, {} BG, {} AR; {} BG with cold partners, as published]",
        *(share(each, 2) for each in off),
    )
    first = {row["label"]: row for row in kept("cifar10_features", "laptop")["contenders"]}
    others = (100 * first[row["label"]]["ece_all_classes"] for row in (*three, cold))
    yield made("features of the same images {} to {}", *(share(each, 2) for each in ends(others)))


def of_networks() -> Iterator[Phrase]:
    """Tell log likelihoods of small networks."""
    boston, wine = (
        rows_by_label("nonlinear_networks", f"{name}_10") for name in ("boston", "wine")
    )

    def losses(rows: dict[str, dict[str, Any]]) -> Iterator[float]:
        for label in ("MALA", "AR tempered"):
            yield from (rows[label]["nll"], rows[label]["standard_errors"]["nll"])

    yield made("Boston MALA {:.2f} ± {:.2f}, AR {:.2f} ± {:.2f}; wine", *losses(boston))
    yield made("wine {:.3f} ± {:.3f}, {:.3f} ± {:.3f}][networks]", *losses(wine))


def of_transdimensional() -> Iterator[Phrase]:
    """Tell sizes, accuracies, errors and seconds of the thesis's experiments."""
    xor, digits, boston = map(published_rows, PUBLISHED)
    plain, noisy = (row for row in xor if row["published"])
    yield made(
        "[{} (p = {:.3f} ± {:.3f}); {} ({:.3f} ± {:.3f})][thesis]",
        *(
            each
            for row in (plain, noisy)
            for each in (row["scores"]["mode"], *likeliest_share(row))
        ),
    )
    yield made(
        "[{:.0f}; {}][thesis] | yes",
        plain["scores"]["accuracy"],
        share(noisy["scores"]["accuracy"]),
    )
    yield made(
        "[{}; {}; {}; {}][thesis] | no: it rises", *(row["scores"]["mode"] for row in digits)
    )
    models = {row["name"]: row for row in kept("transdimensional_digit_models")["models"]}
    four = [models[f"digits-{name}"] for name in ("5-a", "5-b", "10-a", "10-b")]
    errors = ends(row["errors"]["accuracy"] for row in four)
    yield made("[{}; {}; {}; {}, errors {} to {}][thesis-digits]",
               *(share(row["means"]["accuracy"]) for row in four), *map(share, errors))  # fmt: skip
    for name, last in (("top_3", ".984"), ("top_2", ".973")):
        words = f"; {last} | [{{:.1f}}; {{:.1f}}; {{:.1f}}; {{:.1f}} %]"
        yield made(words, *percents(digits, name))
    both = [100 * row["scores"][f"{what}_40"] for row in digits for what in ("precision", "recall")]
    yield made("[{:.1f}, {:.1f}; {:.1f}, {:.1f}; {:.1f}, {:.1f}; {:.1f}, {:.1f} %][thesis]", *both)
    assert {row["scores"]["mode"] for row in boston} == {1}, "one layer in all four"
    yield made(
        "[{:.2f}; {:.2f}; {:.2f}; {:.2f}][thesis] | no: ours",
        *(row["scores"]["rmse"] for row in boston),
    )
    best = {row["name"]: row for row in kept("transdimensional_models")["models"]}["large-e"]
    yield made("[{:.2f} ± {:.2f}][models]", best["means"]["rmse"], best["errors"]["rmse"])
    accepted = [row["scores"]["across"] for row in (*digits, *boston)]
    yield made("[{:.1f} to {:.1f} %][thesis], by other", *(100 * each for each in ends(accepted)))
    seconds = [ends(row["total_seconds"] for row in rows) for rows in (digits, boston)]
    yield made("[{:.0f} s; {:.0f} to {:.0f} s; {:.0f} to {:.0f} s][thesis] on two cores",
               plain["total_seconds"], *seconds[0], *seconds[1])  # fmt: skip


def percents(rows: list[dict[str, Any]], score: str) -> list[float]:
    """A score of each row in per cent."""
    return [100 * row["scores"][score] for row in rows]


def of_faults() -> Iterator[Phrase]:
    """Tell the sizes of the faults that were planted."""
    prior = "prior alone"
    yield made(
        "results of a linear regression are {:.0f} standard errors off",
        size("not resampled", "linear regression", "results"),
    )
    yield made(
        "constant weights are {:.0f} standard errors off",
        size("potential uniform", "tempered cloud", "mean"),
    )
    yield made("exact jumps of neurons have {:.0f} to {:.0f}", *without_fault())
    yield made(
        "Weights are then {:.0f} standard errors off under the prior and {:.0f} with 20 data "
        "points; with layers {:.0f}",
        *(size("two ends", on, "weights") for on in (prior, "20 rows", "prior alone, layers")),
    )
    yield made(
        "Chi-squared is {:.0f} (15 degrees of freedom), for layers {:.0f} (2)",
        *(size("place", prior, of) for of in ("widths", "depth")),
    )
    yield made(
        "is missing: chi-squared {:.0f}, for layers {:.0f}",
        *(size("borders", prior, of) for of in ("widths", "depth")),
    )
