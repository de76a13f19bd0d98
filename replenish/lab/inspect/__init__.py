"""What `replenish inspect` does: run the orders, work out the closed forms, show both in tables, a picture, a page."""

from replenish.lab.inspect.results import Inspection as Inspection
from replenish.lab.inspect.results import inspect_orders as inspect_orders
