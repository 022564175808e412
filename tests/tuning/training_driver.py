"""A small program for the kill test: trains, and says so after every step.

python training_driver.py MODEL FOLDER
"""

import sys

import torch

from climassay.tuning import train
from tuning_parts import parity, small


def main() -> None:
    model, folder = sys.argv[1:]
    torch.set_num_threads(1)
    train(
        model,
        parity(0, 32),
        parity(32, 40),
        small(epochs=2),
        folder,
        checkpoint_seconds=0.0,
        on_progress=lambda progress: print(progress.step, flush=True),
    )
    print("done", flush=True)


if __name__ == "__main__":
    main()
