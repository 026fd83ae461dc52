"""The training step that train/step is measured against, written with PyTorch's own modules.

usage: train_step_peer.py [llama-]eager|compile[-fused][-bf16] [updates]
4 layers, d 256, 4 heads, 8 x 512 tokens, 8,000 types, tied softmax, float32, AdamW, no dropout. llama: RMS norms, gated
SiLU of 688, keys and values of 2 heads, rotary positions, no biases. fused: AdamW's fused kernel. bf16: autocast.
Prints one JSON line: tokens_per_s (median of the updates after the first five), peak_bytes.
"""

import json
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, D, HEADS, ROWS, STEPS, TYPES = 4, 256, 4, 8, 512, 8000


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.project = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.expand, self.reduce = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).view(ROWS, STEPS, 3, HEADS, D // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(ROWS, STEPS, D))
        return x + self.reduce(F.gelu(self.expand(self.norm2(x)), approximate="tanh"))


class LlamaBlock(nn.Module):
    GROUPS, INNER = 2, 688

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(D), nn.RMSNorm(D)
        width = D // HEADS
        self.qkv = nn.Linear(D, D + 2 * self.GROUPS * width, bias=False)
        self.project = nn.Linear(D, D, bias=False)
        self.expand, self.reduce = nn.Linear(D, 2 * self.INNER, bias=False), nn.Linear(self.INNER, D, bias=False)
        angle = torch.arange(STEPS)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("cos", torch.cat((angle, angle), -1).cos())
        self.register_buffer("sin", torch.cat((-angle, angle), -1).sin())

    def turn(self, x):
        return x * self.cos + torch.roll(x, x.shape[-1] // 2, -1) * self.sin

    def forward(self, x):
        heads = self.qkv(self.norm1(x)).view(ROWS, STEPS, HEADS + 2 * self.GROUPS, D // HEADS).transpose(1, 2)
        q, k, v = heads.split((HEADS, self.GROUPS, self.GROUPS), 1)
        k, v = (each.repeat_interleave(HEADS // self.GROUPS, 1) for each in (self.turn(k), v))
        y = F.scaled_dot_product_attention(self.turn(q), k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(ROWS, STEPS, D))
        gate, factor = self.expand(self.norm2(x)).chunk(2, -1)
        return x + self.reduce(F.silu(gate) * factor)


class Model(nn.Module):
    def __init__(self, llama):
        super().__init__()
        self.tokens = nn.Embedding(TYPES, D)
        self.positions = None if llama else nn.Embedding(STEPS, D)
        self.blocks = nn.Sequential(*(LlamaBlock() if llama else Block() for _ in range(LAYERS)))
        self.norm = nn.RMSNorm(D) if llama else nn.LayerNorm(D)

    def forward(self, ids, targets):
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions.weight
        logits = F.linear(self.norm(self.blocks(x)), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, TYPES), targets.reshape(-1))


def main():
    mode, updates = sys.argv[1].split("-"), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    torch.manual_seed(1)
    torch.set_flush_denormal(True)
    model = Model("llama" in mode)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused="fused" in mode or None)
    step = torch.compile(model) if "compile" in mode else model
    times = []
    for _ in range(updates + 5):
        ids = torch.randint(TYPES, (ROWS, STEPS + 1))
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled="bf16" in mode):
            loss = step(ids[:, :-1], ids[:, 1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        times.append(time.perf_counter() - begin)
    median = sorted(times[5:])[updates // 2]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"tokens_per_s": ROWS * STEPS / median, "peak_bytes": peak}))


main()
