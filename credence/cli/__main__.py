"""`python -m credence.cli`, where the command `credence` is not on the path."""

from credence.cli import main

main()
