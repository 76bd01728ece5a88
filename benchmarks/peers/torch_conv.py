"""A peer: the convolutions of N of RAD's encoders in PyTorch, forward and backward, one after the other.

The faster of PyTorch's two memory layouts is taken.
"""

import sys

import torch
from torch import nn

from turns import fastest

SIZE, CHANNELS, FILTERS, LAYERS = 84, 9, 32, 4


def encoder():
    layers = []
    for depth in range(LAYERS):
        inputs, stride = (FILTERS, 1) if depth else (CHANNELS, 2)
        layers += [nn.Conv2d(inputs, FILTERS, 3, stride=stride), nn.ReLU()]
    return nn.Sequential(*layers)


def passes(encoders, pictures, cotangent):
    for one in encoders:
        one.zero_grad(set_to_none=True)
        one(pictures).backward(cotangent)


if __name__ == "__main__":
    torch.manual_seed(0)
    members, rows = int(sys.argv[1]), int(sys.argv[2])
    subjects = []
    for layout in (torch.contiguous_format, torch.channels_last):
        encoders = [encoder().to(memory_format=layout) for _ in range(members)]
        pictures = torch.rand(rows, CHANNELS, SIZE, SIZE).to(memory_format=layout)
        with torch.no_grad():
            cotangent = torch.rand_like(encoders[0](pictures)).to(memory_format=layout)
        subjects.append((encoders, pictures, cotangent))
    subject = min(subjects, key=lambda each: fastest(lambda: passes(*each), 2))
    speed = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        speed[threads] = fastest(lambda: passes(*subject), 2)
    threads = min(speed, key=speed.get)
    torch.set_num_threads(threads)
    print(threads, flush=True)
    for _ in sys.stdin:  # a pass takes seconds: fewer of them than in turns.py
        print(fastest(lambda: passes(*subject), 3), flush=True)
