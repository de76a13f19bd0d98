"""`python -m replenish`: the command, for where a module is wanted: `torchrun -m replenish exec ...`."""

from replenish.cli import main

if __name__ == "__main__":
    main()
