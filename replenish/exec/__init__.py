"""Scripts that nobody edits, run with another order: what `replenish exec` and the comparison of commands share.

A run is told by its environment which order to use (`environment`). Every Python process below it, however it is
started, has a hook that waits for torch (`site/sitecustomize.py`), gives the order to the loaders that the script makes
(`hook`), and writes down what became of each (`records`). `run_script` runs a script as `python` would.
"""
