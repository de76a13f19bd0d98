"""`python -m replenish.cli`, which is also what torchrun starts."""

from replenish.cli import main

if __name__ == "__main__":
    main()
