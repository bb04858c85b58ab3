"""A class is abstract or final: what is derived from cannot be used as it is."""

import importlib
import inspect
import pkgutil
from abc import ABC
from collections.abc import Iterator

import credence


def classes() -> Iterator[type]:
    """All classes that the library defines."""
    for module in pkgutil.walk_packages(credence.__path__, "credence."):
        if not module.name.endswith("__main__"):
            found = vars(importlib.import_module(module.name)).values()
            yield from (c for c in found if inspect.isclass(c) and c.__module__ == module.name)


def is_abstract(base: type) -> bool:
    return inspect.isabstract(base) or ABC in base.__bases__ or getattr(base, "_is_protocol", False)


def test_every_base_is_abstract() -> None:
    ours = [c for c in classes() if not issubclass(c, BaseException)]
    derived = [
        f"{c.__module__}.{c.__name__} from {base.__name__}"
        for c in ours
        for base in c.__bases__
        if base.__module__.startswith("credence.") and not is_abstract(base)
    ]
    assert len(ours) > 200
    assert sorted(derived) == [  # scikit-learn's way: its estimators are cloned by their arguments
        "credence.estimators.classifier.BNNClassifier from BNN",
        "credence.estimators.regressor.BNNRegressor from BNN",
    ]
