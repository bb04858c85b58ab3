"""A class is abstract or final: what is derived from cannot be used as it is."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import credence
import credence_papers


def classes() -> Iterator[type]:
    """All classes that the library and the papers define."""
    for package in (credence, credence_papers):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                found = vars(importlib.import_module(module.name)).values()
                yield from (c for c in found if inspect.isclass(c) and c.__module__ == module.name)


def is_abstract(base: type) -> bool:
    return inspect.isabstract(base) or getattr(base, "_is_protocol", False)


def test_every_base_is_abstract() -> None:
    ours = [c for c in classes() if not issubclass(c, BaseException)]
    derived = [
        f"{c.__module__}.{c.__name__} from {base.__name__}"
        for c in ours
        for base in c.__bases__
        if base.__module__.startswith(("credence.", "credence_papers.")) and not is_abstract(base)
    ]
    assert len(ours) > 200
    assert derived == []
