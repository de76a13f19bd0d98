"""Runs unmodified scripts with another data order, for `replenish exec` and for the comparison of commands.

The environment of a run names the order (`environment`). In every Python process of the run, `site/sitecustomize.py`
waits for the classes of loaders, `hook` gives the order to the loaders that the script makes, and `records` writes what
happened to each. `run_script` runs a script as `python` would.
"""
