"""How Sphinx builds the site: `make docs`."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "make"))
os.environ.setdefault("COLUMNS", "100")  # of the command line's help

from credence import __version__

project = "Credence"
author = copyright = "The Credence developers"
release = version = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "reference",  # docs/make/reference.py
]
exclude_patterns = ["_build", "make"]
nitpicky = False

html_theme = "furo"
html_title = "Credence"
html_static_path = ["_static"]
html_css_files = ["credence.css"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

# Notebooks are run once and kept in the cache; CREDENCE_DOCS_EXECUTE=off shows them unrun.
nb_execution_mode = os.environ.get("CREDENCE_DOCS_EXECUTE", "cache")
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True

default_role = "literal"
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True, "inherited-members": False}
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
