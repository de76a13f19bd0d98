"""Unmodified scripts, run with another data order: what `replenish exec` and the comparison of commands share.

The environment of a run names the order (`environment`). Every Python process below it, however it is started, has a
hook that waits for the classes of loaders (`site/sitecustomize.py`), gives the order to the loaders that the script
makes (`hook`), and writes what happened to each (`records`). `run_script` runs a script as `python` would.
"""
