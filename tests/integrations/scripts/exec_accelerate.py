"""A typical Accelerate training that does not use replenish. Writes the samples of each step."""

import json
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
dataset = TensorDataset(torch.randn(101, 4), torch.arange(101))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
seen = []
for _ in range(2):
    for data, index in loader:
        optimizer.zero_grad()
        accelerator.backward(model(data).square().mean())
        optimizer.step()
        seen.append(index.tolist())
Path(sys.argv[1], f"rank{accelerator.process_index}.json").write_text(json.dumps(seen))
accelerator.end_training()
