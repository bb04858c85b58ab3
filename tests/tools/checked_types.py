"""The type checker of the test session: every annotated shape and type is checked at every call."""

from beartype import BeartypeConf, beartype

# The numeric tower of PEP 484: an int will do where a float is asked for.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
