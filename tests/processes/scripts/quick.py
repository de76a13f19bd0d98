"""A script without a training. Its metric depends on its seed and on the samples that it saw."""

import argparse
import json
import sys

from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--out")
parser.add_argument("--fail-at", type=int)
parser.add_argument("--nan", action="store_true")
parser.add_argument("--sleep", type=float, default=0)
args = parser.parse_args()
if args.sleep:
    import time

    time.sleep(args.sleep)
if args.seed == args.fail_at:
    print("so far so good")
    sys.exit("something is wrong")
distinct = 0
for epoch in range(2):
    seen = [index for batch in DataLoader(range(40), batch_size=4, shuffle=True) for index in batch.tolist()]
    distinct += len(set(seen))
    print(f"epoch {epoch}: score: {distinct + 0.01 * args.seed:.2f}")
if args.nan:
    print("epoch 2: score: nan")
if args.out:
    with open(args.out, "w") as file:
        json.dump({"test": {"score": distinct + 0.01 * args.seed}}, file)
