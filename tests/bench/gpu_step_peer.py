"""The training step that tools/gpu-bench is measured against, written with PyTorch's own modules.

usage: gpu_step_peer.py eager|compile DEVICE LAYERS D HEADS ROWS STEPS TYPES [updates]
GPT-2's blocks, learned positions, tied plain softmax, bfloat16 autocast with float32 weights, fused AdamW, no dropout.
Prints one JSON line: tokens_per_s (the median of the updates after the first five).
"""

import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.project = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.expand, self.reduce = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        rows, steps, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(rows, steps, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(rows, steps, d))
        return x + self.reduce(F.gelu(self.expand(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, layers, d, heads, steps, types):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(types, d), nn.Embedding(steps, d)
        self.blocks = nn.Sequential(*(Block(d, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(d)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions.weight
        logits = F.linear(self.norm(self.blocks(x)), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    mode, device = sys.argv[1:3]
    layers, d, heads, rows, steps, types = map(int, sys.argv[3:9])
    updates = int(sys.argv[9]) if len(sys.argv) > 9 else 20
    torch.manual_seed(1)
    model = Model(layers, d, heads, steps, types).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    step = torch.compile(model) if mode == "compile" else model

    def wait():
        if device != "cpu":
            torch.cuda.synchronize()

    times = []
    for _ in range(updates + 5):
        ids = torch.randint(types, (rows, steps + 1)).to(device)
        wait()
        begin = time.perf_counter()
        with torch.autocast(torch.device(device).type, torch.bfloat16):
            loss = step(ids[:, :-1], ids[:, 1:])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        wait()
        times.append(time.perf_counter() - begin)
    times = sorted(times[5:])
    print(json.dumps({"tokens_per_s": rows * steps / times[len(times) // 2]}))


main()
