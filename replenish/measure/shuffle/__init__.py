"""`shuffle_quality`: a battery of statistics on index streams, which shows how uniform a shuffle is."""
