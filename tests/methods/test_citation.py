"""Every method says which papers a user should cite."""

import re

import pytest

from credence import citation
from credence.errors import InputError
from credence.methods import METHODS, NUTS


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_names_papers(name: str) -> None:
    for line in citation(name).splitlines():
        assert re.search(r'^[A-Z].+, ".+"( \(\d{4}\))?\.$', line)


def test_a_method_is_cited_by_name_or_as_an_object() -> None:
    assert citation(NUTS()) == citation("nuts")
    assert citation("auto") == citation("stacking")
    assert "Hoffman" in citation("nuts")


def test_a_name_that_is_not_known() -> None:
    with pytest.raises(InputError, match="nuts"):
        citation("nutz")
