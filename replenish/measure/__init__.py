"""Measurements of orders, loaders and streams. Their public name is `replenish.diagnostics`."""
