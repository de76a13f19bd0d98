# Runs stage 1 of the decisive experiment on one GPU: see docs/howto/run_the_decisive_experiment.md.
#   docker build -t replenish . && docker run --gpus all -v "$PWD/runs:/replenish/runs" replenish
FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*
WORKDIR /replenish
COPY . .
# torch's wheels for Linux bring CUDA with them.
# Editable, so that the record names the commit.
RUN python -m pip install --no-cache-dir -c constraints.txt -e '.[lab]'
CMD replenish data get cifar100 && replenish run decisive --accelerator cuda --yes
