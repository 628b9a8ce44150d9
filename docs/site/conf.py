"""The documentation as a site: the Markdown files as they are, and a reference from docstrings.

``make site`` runs it over the repository's root; a warning is an error.
"""

import sys
from pathlib import Path

import discreet

sys.path.insert(0, str(Path(__file__).parents[2]))
from tools.documents import group_names

project = "discreet"
author = "The discreet authors"
copyright = "The discreet authors"  # noqa: A001 (Sphinx names its settings)
version = release = discreet.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
root_doc = "docs/site/index"
include_patterns = [
    "*.md",
    "docs/**",
    "bench/README.md",
    "experiments/*.md",
    "experiments/calibration/*.md",
]
exclude_patterns = ["build", ".venv*"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}

# Notebooks are kept without their outputs, so they are run while the site is built.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600

myst_enable_extensions = ["deflist", "dollarmath", "html_image"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure", "ref.python", "mystnb.unknown_mime_type"]

autodoc_typehints = "none"
napoleon_attr_annotations = False
autodoc_member_order = "bysource"
html_theme = "furo"
smartquotes = False  # options begin with two hyphens
html_title = "discreet"
html_extra_path = ["index.html"]  # the root of the site leads to the first page


def list_public_names(app, document, text):
    """Write the reference: every public name of the library, described by its docstring."""
    del app
    if document == "docs/site/reference":
        for task, names in group_names().items():
            text[0] += f"\n## {task}\n" + "".join(describe(name) for name in names)


def describe(name):
    """Return the directive that shows one public name."""
    value = getattr(discreet, name)
    kind = "class" if isinstance(value, type) else "function" if callable(value) else "module"
    members = "" if kind == "function" else "   :members:\n"
    if kind == "module":
        twice = sorted(set(discreet.__all__) & set(dir(value)))
        members += f"   :exclude-members: {', '.join(twice)}\n"
    return f"\n```{{eval-rst}}\n.. auto{kind}:: discreet.{name}\n{members}```\n"


def skip_foreign(app, what, name, value, skip, options):
    """Leave out what scikit-learn puts into every estimator; its text links into its own manual."""
    del app, what, value, options
    return True if name.startswith("set_") and name.endswith("_request") else skip


def setup(app):
    """Let the reference page fill itself."""
    app.connect("source-read", list_public_names)
    app.connect("autodoc-skip-member", skip_foreign)
