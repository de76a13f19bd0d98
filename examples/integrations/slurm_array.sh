#!/bin/bash
# One Slurm task per seed: sbatch --partition=gpu --time=4:00:00 slurm_array.sh
# The script may be queued again by Slurm (preemption), or by its last lines (time limit); runs then resume.
#SBATCH --array=0-4 --gpus=1 --requeue --open-mode=append
# Two minutes before the time limit, the run gets SIGTERM, saves and exits with 143.
#SBATCH --signal=TERM@120

srun replenish run table3 --seeds "$SLURM_ARRAY_TASK_ID-$SLURM_ARRAY_TASK_ID" \
    --accelerator cuda --yes --runs runs  # a folder that all nodes see
code=$?
# After scancel, the task is no longer RUNNING, and is not queued again.
if [ $code = 143 ] && [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)" = RUNNING ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit $code
