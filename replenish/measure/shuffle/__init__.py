"""How uniform is a shuffle? A battery of statistics on index streams, without labels: `shuffle_quality`."""
