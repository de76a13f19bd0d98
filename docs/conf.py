"""How Sphinx builds the site (`make docs`). Neither building nor reading it needs a network."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.ext.autodoc.mock import _MockModule

import replenish

_MockModule.__version__ = "99.0"  # the adapters refuse old versions of frameworks, which are mocked here

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Replenish"
author = "The Replenish authors"
project_copyright = author
version = release = replenish.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    # The next are in docs/_ext.
    "command_list",
    "dead_links",
    "docstrings",
    "experiments",
    "explorer",
    "mathml",
    "notebooks",
    "order_list",
    "report",
    "repository",
]
exclude_patterns = ["_build"]
nitpicky = True

# ---- Pages ----

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
copybutton_exclude = ".linenos, .gp, .go"  # prompts and output are not copied

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = "Replenish"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["frames.js"]
html_copy_source = False
html_show_search_summary = False  # it fetches pages, which browsers refuse where the site is opened from files
html_theme_options = {"top_of_page_buttons": []}

# ---- API reference, from the docstrings ----

autodoc_member_order = "bysource"
maximum_signature_line_length = 90
python_use_unqualified_type_names = True
autosummary_generate = False
autodoc_preserve_defaults = True
default_role = "name"  # docstrings write `names` as Markdown does
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Only one adapter needs each of these, and together they take gigabytes.
autodoc_mock_imports = ["accelerate", "grain", "keras", "lightning", "ray", "torchdata", "transformers"]
# Written out, each would fill half a page.
autodoc_type_aliases = {
    "ArrayLike": "ArrayLike",
    "npt.ArrayLike": "ArrayLike",
    "Int64Array": "Int64Array",
    "UInt8Array": "UInt8Array",
    "Float64Array": "Floats",
    "Floats": "Floats",
    "Integers": "Int64Array",
    "Place": "ArrayLike | None",
    "Source": "Source",
}

# Two classes have fields with the same name.
suppress_warnings = ["ref.python"]

# Names without a page here: those of other packages, whose indices Sphinx would have to download; names of array and
# function types in annotations; and names imported only for the type checker.
nitpick_ignore_regex = [
    ("py:.*", r"(accelerate|collections|fractions|grain|keras|matplotlib|numpy|os|pathlib|torch|transformers)\..*"),
    ("py:class", r"np\.\w+"),
    ("py:class", r"replenish\.(lab\.(jobs|report\.\w+|show\.\w+)|torch\.\w+)\.[A-Z]\w*"),
    ("py:class", r"(dict\[str|tuple\[int)"),  # beside a default factory of a dataclass field
    ("py:exc", r"OutOfTimeError"),
    ("py:class", r"((nn|np|npt)\.|replenish\.(stream|torch)\.\w+\.)?[A-Z]\w*"),
]
