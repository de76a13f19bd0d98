"""`replenish explain`: a trace of SRS in the terminal, or as a page that plays it."""
