"""A typical plain training loop on digits, with arguments, a training loader and a test loader."""

import argparse
import json

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, train):
        from sklearn.datasets import load_digits

        digits = load_digits()
        chosen = slice(0, 450) if train else slice(450, 700)
        self.images = torch.tensor(digits.images[chosen], dtype=torch.float32).unsqueeze(1) / 16
        self.labels = torch.tensor(digits.target[chosen])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index], index


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.out = nn.Linear(8 * 36, 10)

    def forward(self, x):
        return self.out(torch.flatten(F.relu(self.conv(x)), 1))


def train(model, loader, optimizer):
    model.train()
    seen = []
    for data, target, index in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(data), target).backward()
        optimizer.step()
        seen.append(index.tolist())
    return seen


def test(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target, _ in loader:
            correct += (model(data).argmax(dim=1) == target).sum().item()
    return 100 * correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--start-method")
    parser.add_argument("--drop-last", action="store_true")
    parser.add_argument("--log")
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    workers = {"num_workers": args.workers, "multiprocessing_context": args.start_method}
    train_loader = DataLoader(
        Digits(train=True),
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=args.drop_last,
        persistent_workers=args.workers > 0,
        **workers,
    )
    test_loader = DataLoader(Digits(train=False), batch_size=1000)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    seen = []
    for epoch in range(args.epochs):
        batches = train(model, train_loader, optimizer)
        assert len(batches) == len(train_loader)
        seen += batches
        accuracy = test(model, test_loader)
        print(f"epoch {epoch + 1}: test acc: {accuracy:.2f}")
    if args.log:
        with open(args.log, "w") as file:
            json.dump(seen, file)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"test": {"accuracy": accuracy}, "epochs": args.epochs}, file)


if __name__ == "__main__":
    main()
