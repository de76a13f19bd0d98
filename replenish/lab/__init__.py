"""The lab: the paper's networks, data, training and experiments."""
