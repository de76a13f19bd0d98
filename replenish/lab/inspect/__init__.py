"""`replenish inspect`: what the orders draw, next to the closed forms, in tables and as a page."""

from replenish.lab.inspect.results import Inspection as Inspection
from replenish.lab.inspect.results import inspect_orders as inspect_orders
