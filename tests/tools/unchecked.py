"""Settings whose annotations are not checked before, as those of users are not."""

import dataclasses
from typing import Any


def unchecked(cls: type[Any], **settings: Any) -> Any:
    """The dataclass, which has judged settings itself, as `__post_init__` does."""
    made = object.__new__(cls)
    for field in dataclasses.fields(cls):
        object.__setattr__(made, field.name, settings.get(field.name, field.default))
    made.__post_init__()
    return made
