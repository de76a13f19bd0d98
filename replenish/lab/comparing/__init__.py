"""Compare orders in the lab's training (`data`), in your command (`command`) or in your function (`function`).

All three take a `Question` and return an `Answer`. Use them as `replenish.lab.compare`,
`replenish.lab.compare_trainings` and the command `replenish compare`. The package is called `comparing` because
`replenish.lab.compare` is the function.
"""
