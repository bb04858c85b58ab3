"""The page of an error-cost study: one HTML file, findings first."""

from typing import Any

from credence.html.document import document
from credence.html.markup import Html, element
from credence.html.parts import columns, figure, key, masthead, section, table
from credence.html.wording import count, duration, number
from credence_papers.multilevel.error_cost.charts import cost_chart

LEGEND = {"accent": "one level (SMC)", "second": "several levels (MLSMC)", "muted": "theory"}
READINGS = {
    "flops": "All work that was done. Lower left is better.",
    "seconds": "The same runs by the clock, compilation left out.",
    "nominal": "The same runs as the paper would count them: no temperatures, no mutation steps.",
}
NAMES = {"flops": "counted work", "seconds": "seconds", "nominal": "nominal cost"}
METHODS = {"smc": "one level", "mlsmc": "several levels"}
CAVEAT = (
    "Lines are lower envelopes: at every error each method is its cheapest choice of widths and "
    "particles among those measured, on straight lines between them. Bars are two standard errors. "
    "The squared error of the reference is taken off. A minimum over noisy points is a little too "
    "low, for both methods alike."
)


def render(summary: dict[str, Any]) -> str:
    """The page as text; all text in `summary` is escaped."""
    facts = (
        f"Credence · {count(len(summary['problems']), 'problem')} · size {summary['size']} · "
        f"up to {count(summary['replicates'], 'replicate')} of a setting · seed {summary['seed']}"
    )
    head = masthead(summary["description"], facts)
    parts = [_problem(problem, f"p{i}") for i, problem in enumerate(summary["problems"])]
    source = [element("p", summary["source"], class_="small")] if summary["source"] else []
    main = element("main", head, _overview(summary), *parts, *source)
    return document(f"Error against cost: {summary['experiment']}", main)


def _overview(summary: dict[str, Any]) -> Html:
    """One sentence per problem."""
    items = [element("li", f"{p['name']}: {sentence(p)}") for p in summary["problems"]]
    return element(
        "div",
        element("p", "What several levels save", class_="headline"),
        element("ul", *items),
        element("p", CAVEAT, class_="small"),
    )


def sentence(problem: dict[str, Any]) -> str:
    """What a problem shows, in one sentence."""
    if not problem["fits"]:
        return "nothing could be compared: the reference failed."
    ratio = problem["fits"]["flops"]["ratio"]
    if ratio["value"] is None:
        return "no error is reached by both methods."
    error = number(problem["fits"]["flops"]["lowest_common"], 2)
    widest = interval(problem["fits"]["flops"]["ratio_widest"])
    word = "inconclusive"
    if ratio["low"] is not None and ratio["low"] > 1:
        word = "several levels are cheaper"
    elif ratio["high"] is not None and ratio["high"] < 1:
        word = "one level is cheaper"
    return (
        f"{word}. At the lowest common mean square error, {error}, one level costs "
        f"{interval(ratio)} times as much by counted work, "
        f"{interval(problem['fits']['seconds']['ratio'])} by the clock, and "
        f"{interval(problem['fits']['nominal']['ratio'])} by the paper's nominal cost; kept to its "
        f"widest network, {widest} times by counted work; kept to the width that the paper's bound "
        f"asks for, {interval(problem['fits']['flops']['ratio_bound'])}.{_all_counted(problem)}"
    )


def _all_counted(problem: dict[str, Any]) -> str:
    """The ratios by counted work where every replicate of several levels is charged its pilots."""
    found = problem.get("preparation")
    if not found or not found["pilot_flops"]:
        return ""
    return (
        " With pilots and the choice of widths charged to every replicate these are "
        f"{interval(found['ratio'])}, and {interval(found['ratio_widest'])} for its widest network."
    )


def scientific(value: float) -> str:
    """Two digits and a power of ten."""
    return (
        f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e").replace("-", "−")
    )


def interval(fitted: dict[str, Any]) -> str:
    """A number and its 95 % interval."""
    if fitted["value"] is None:
        return "–"
    if fitted["low"] is None:
        return number(fitted["value"], 2)
    low, high = number(fitted["low"], 2), number(fitted["high"], 2)
    return f"{number(fitted['value'], 2)} ({low} to {high})"


def _problem(problem: dict[str, Any], name: str) -> Html:
    parts = [element("p", f"{problem['description']} {problem['model']}.")]
    parts += [element("p", problem["published"], class_="small")] if problem["published"] else []
    if problem["points"]:
        drawn = [_figure(problem, measure, name) for measure in ("flops", "seconds", "nominal")]
        parts += [columns(drawn[:1], drawn[1:2]), columns(drawn[2:], [_slopes(problem)])]
    parts += [_reference(problem), *_ladders(problem), *_preparation(problem), _points(problem)]
    parts += [
        element("p", f"{each['label']} failed: {each['error']}", class_="small")
        for each in problem["failed"]
    ]
    if problem["warnings"]:
        told = element("ul", *(element("li", text) for text in problem["warnings"]))
        number_of = element("summary", count(len(problem["warnings"]), "warning"))
        parts.append(element("details", number_of, told, class_="small"))
    return section(
        problem["name"], *parts, is_converged=problem["reference"]["converged"] is not False
    )


def _figure(problem: dict[str, Any], measure: str, name: str) -> Html:
    reading = READINGS[measure]
    chart = cost_chart(problem, measure, f"{name}-{measure}", reading)
    return figure(f"Error against {NAMES[measure]}", reading, chart, key(**LEGEND))


def _slopes(problem: dict[str, Any]) -> Html:
    rows = [
        [
            f"{METHODS[method]}, {NAMES[measure]}",
            interval(fits["slopes"][method]),
            number(problem["theory"][method], 3),
        ]
        for measure, fits in problem["fits"].items()
        for method in METHODS
    ]
    head = ["Slope, log cost to log error", "Fitted (95 %)", "Theory"]
    return element("div", table(head, rows), *_slopes_by_family(problem), class_="stack")


def _slopes_by_family(problem: dict[str, Any]) -> list[Html]:
    """A table of slopes by particles alone, where an envelope changes from family to family."""
    by_measure = {
        measure: fits["slopes_by_family"]
        for measure, fits in problem["fits"].items()
        if fits.get("slopes_by_family")
    }
    if not by_measure:
        return []
    rows = [
        [family, *(interval(slopes[family]) for slopes in by_measure.values())]
        for family in next(iter(by_measure.values()))
    ]
    head = ["Slope of one choice of widths and moves", *(NAMES[each] for each in by_measure)]
    return [table(head, rows)]


def _reference(problem: dict[str, Any]) -> Html:
    facts = problem["reference"]
    if "noise" not in facts:
        return element("p", "The reference failed.", class_="warning")
    called, runs, draws = (
        ("SMC", "runs", "particles") if facts["method"] == "smc" else ("NUTS", "chains", "draws")
    )
    text = (
        f"Reference: {called} at width {facts['width']}, {facts['num_chains']} {runs} of "
        f"{facts['num_draws']} {draws}, R-hat {number(facts['max_rhat'], 4)}, smallest ESS "
        f"{number(facts['min_ess'])}, {duration(facts['seconds'])}; squared standard error "
        f"{number(facts['noise'], 2)}, posterior variance "
        f"{number(facts['posterior_variance'], 2)}, both means over {problem['quantity']}."
    )
    rows = [
        [str(row["width"]), number(row["bias_squared"], 2), number(row["noise"], 2)]
        for row in problem["biases"]
    ]
    biases = [table(["Width", "Squared bias", "Noise taken off"], rows)] if rows else []
    return element("div", element("p", text), *biases, class_="stack")


def _ladders(problem: dict[str, Any]) -> list[Html]:
    """A table of every level's variance and cost, and what they make of the best allocation."""
    rows = [
        [
            f"{each['family']}, width {width}",
            number(each["nats"][level - 1], 2) if level else "–",
            *(scientific(each[name][level]) for name in ("variances", "costs")),
        ]
        for each in problem.get("pilots", ())
        for level, width in enumerate(each["widths"])
    ]
    if not rows:
        return []
    products = [f"{each['family']} {scientific(each['product'])}" for each in problem["pilots"]]
    singles = {
        row["family"]: f"{row['family']} {scientific(row['variance'] * row['flops'])}"
        for row in problem["points"]
        if row["method"] == "smc"
    }
    text = (
        "Variance times work, from pilots at the best allocation for several levels (the square of "
        "the sum of sqrt(V_l C_l)) and as measured for one level: "
        f"{'; '.join([*products, *singles.values()])}. A step that changes the log likelihood by "
        "more than 0.4 nats is tempered, and then the two levels have next to nothing in common."
    )
    head = ["Level", "Step, nats", "V_l, of one particle", "C_l, operations"]
    return [element("div", element("p", text), table(head, rows), class_="stack")]


def _preparation(problem: dict[str, Any]) -> list[Html]:
    """Work of the runs that chose widths and particles."""
    found = problem.get("preparation")
    if not found or not found["pilot_flops"]:
        return []
    pilots = (f"{family} {scientific(flops)}" for family, flops in found["pilot_flops"].items())
    text = (
        f"Operations before the first replicate: choice of the widths "
        f"{scientific(found['ladder_flops'])}, pilots {'; '.join(pilots)}."
    )
    return [element("p", text)]


def _points(problem: dict[str, Any]) -> Html:
    head = ["Setting", "Particles", "MSE", "± se", "Variance", "Operations", "Seconds",
            "Compile, s", "Nominal", "Tempered between levels"]  # fmt: skip
    rows = [
        [
            row["family"],
            " ".join(map(str, row["particles"])),
            *(scientific(row[name]) for name in ("mse", "mse_error", "variance", "flops")),
            *(number(row[name], 2) for name in ("seconds", "compile_seconds")),
            scientific(row["nominal"]),
            _tempered(row),
        ]
        for row in problem["points"]
    ]
    return table(head, rows)


def _tempered(row: dict[str, Any]) -> str:
    """How many replicates were tempered between levels."""
    if row["method"] == "smc" or row.get("tempered") is None:
        return "–"
    return f"{row['tempered']} of {row['replicates']}"
