"""Which order is better? In the lab's training (`data`), your command (`command`) or your function (`function`).

All three ask a `question`, reach a `verdict` and write a `page`. Use them as `replenish.lab.compare`,
`replenish.lab.compare_trainings` and the command `replenish compare`. The room is called `comparing` because
`replenish.lab.compare` is the function.
"""
