"""The table of finite clouds on two states, computed exactly from the transitions of the tests."""

from parts import markdown

SIZES = (2, 5, 20)


def table() -> str:
    """Probability of state 1 by the number of particles; the limit is the target's."""
    from tools.two_state import TARGET, stationary_law

    rows = [
        [f"`{jump}`", *(f"{stationary_law(size, jump).mean:.4f}" for size in SIZES), f"{TARGET}"]
        for jump in ("bg", "ar")
    ]
    return markdown(["N", *map(str, SIZES), "∞"], rows)
