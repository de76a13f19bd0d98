"""Test the law of an order's noise on a network: the variance of SGD around a minimum, along Hessian eigenvectors."""
