"""This repository's own research: not installed with the library."""
