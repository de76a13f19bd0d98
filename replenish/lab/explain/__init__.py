"""`replenish explain`: a trace of SRS shown in the terminal or as a page that plays it."""
