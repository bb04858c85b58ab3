"""Starts a module of ours in a process of its own, which imports what this process would.

`python -m` puts the current folder first among those that Python imports from, and a table may lie
beside a file `jax.py` of another's. So the new process leaves that folder out, and is told where
Credence is.
"""

import sys
from pathlib import Path

HOME = Path(__file__).parents[1]
"""The folder in which the package lies."""

START = """
import runpy, sys
home, module = sys.argv[1:3]
del sys.argv[1:3]
sys.path.insert(0, home)
import credence
sys.path.append(sys.path.pop(0))
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""What the process runs: of all that lies beside the package, it takes only this one first."""


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours by this Python, but nothing of the current folder.

    Args:
        module: such as credence.netcdf; its `__name__` is "__main__".
        arguments: of the module.
    """
    return [sys.executable, "-P", "-c", START, str(HOME), module, *arguments]
