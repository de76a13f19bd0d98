"""What an order, a loader or a stream really does. The public name of this room is `replenish.diagnostics`."""
