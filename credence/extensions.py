"""Names for things of ours, and for those that other packages add by entry points.

A package adds a method by two lines of its pyproject.toml, which name a class and where it is:

    [project.entry-points."credence.methods"]
    my_method = "my_package.my_module:MyMethod"
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib import metadata
from importlib.metadata import EntryPoint
from typing import Any, TypeVar

from credence.errors import InputError, did_you_mean

Thing = TypeVar("Thing")


def installed(group: str) -> Iterable[EntryPoint]:
    """The entry points of all installed packages."""
    return metadata.entry_points(group=group)


class Registry(Mapping[str, Thing]):
    """Things by name; one that another package adds is imported when it is asked for.

    Args:
        noun: what one of them is called in sentences.
        group: of the entry points.
        is_one: whether an object is such a thing; it has a `name` too.
        own: the things of ours, whose names nobody else can take.
    """

    def __init__(
        self,
        noun: str,
        group: str,
        is_one: Callable[[Any], bool],
        own: Mapping[str, Thing] | None = None,
    ) -> None:
        self.noun, self.group, self.is_one, self.own = noun, group, is_one, dict(own or {})

    @cached_property
    def added(self) -> dict[str, EntryPoint]:
        """What other packages add, by name; a name that is taken already is left out and told."""
        found: dict[str, EntryPoint] = {}
        for entry in installed(self.group):
            if entry.name not in self.own and entry == found.setdefault(entry.name, entry):
                continue
            warnings.warn(
                f"The {self.noun} '{entry.name}' of {_package(entry)} is left out: the name is "
                "taken. Rename one, or uninstall its package.",
                stacklevel=2,
            )
        return found

    def __iter__(self) -> Iterator[str]:
        yield from (*self.own, *self.added)

    def __len__(self) -> int:
        return len(self.own) + len(self.added)

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self.added

    def __getitem__(self, name: str) -> Thing:
        """The thing of that name.

        Raises:
            KeyError: where there is none.
            InputError: where another package's cannot be imported.
        """
        return self.own[name] if name in self.own else self._loaded(self.added[name], name)

    def find(self, name: str) -> Thing:
        """The thing of a name, or of an import path "package.module:NAME".

        Raises:
            InputError: where there is none, with the nearest name, or where it cannot be imported.
        """
        if ":" in name:
            return self._loaded(EntryPoint(name, name, self.group))
        if name not in self:
            raise InputError(
                f"Unknown {self.noun} '{name}': choose one of {', '.join(self)}."
                + did_you_mean(name, self)
            )
        return self[name]

    def described(self, describe: Callable[[Thing], str]) -> dict[str, str]:
        """A sentence about each; of one that cannot be imported, why not."""
        found = {}
        for name in self:
            try:
                found[name] = describe(self[name])
            except InputError as error:
                found[name] = str(error)
        return found

    def _loaded(self, entry: EntryPoint, name: str | None = None) -> Thing:
        """What an entry point names, refused where it is no such thing or has another name."""
        about = f"The {self.noun} '{entry.name}' of {_package(entry)}"
        try:
            found = entry.load()
        except Exception as error:  # whatever another's module raises
            raise InputError(
                f"{about} cannot be imported ({type(error).__name__}: {error}): mend or uninstall "
                "the package."
            ) from error
        if not self.is_one(found):
            raise InputError(f"{about} is no {self.noun}: {entry.value} is {found!r:.60}.")
        if name is not None and found.name != name:
            raise InputError(f"{about} calls itself '{found.name}': give it one name.")
        return found


def _package(entry: EntryPoint) -> str:
    """The package that an entry point belongs to."""
    name = entry.dist.name if entry.dist else entry.value.split(":")[0].split(".")[0]
    return f"the package '{name}'"
