"""The command as a module: `python -m replenish`, or `torchrun -m replenish exec ...`."""

from replenish.cli import main

if __name__ == "__main__":
    main()
