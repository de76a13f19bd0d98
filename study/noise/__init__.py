"""The law of an order's noise on a network: SGD around a minimum, its variance along the Hessian's eigenvectors."""
