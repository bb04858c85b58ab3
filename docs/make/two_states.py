"""The table of finite clouds on two states, computed exactly from the transitions of the tests."""

from parts import markdown

SIZES = (2, 5, 20)


def means(jump: str) -> list[float]:
    """Probability of state 1 under the stationary law of each number of particles."""
    from tools.two_state import stationary_law

    return [stationary_law(size, jump).mean for size in SIZES]


def table() -> str:
    """Probability of state 1 by the number of particles; the limit is the target's."""
    from tools.two_state import TARGET

    rows = [
        [f"`{jump}`", *(f"{mean:.4f}" for mean in means(jump)), f"{TARGET}"]
        for jump in ("bg", "ar")
    ]
    return markdown(["N", *map(str, SIZES), "∞"], rows)
