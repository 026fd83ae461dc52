"""Two processes of torch.distributed that gather each other's keys as fairseq's TRIME does: all_gather, then the own keys
put back live, so that a key learns from its own process's loss alone. Each row is a segment of one text; a token sees
all tokens before it, of all rows.

gathered_memory.py > gathered_memory.json   writes the numbers, each process's loss, and the gradients of its f, g and
                                            of the head, in float64
"""

import json
import os
import random
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

RANKS, ROWS, STEPS, WIDTH, WORDS, TEMPERATURE = 2, 2, 3, 4, 5, 1.5  # ROWS of each rank


def numbers(*shape):
    count = torch.Size(shape).numel()
    return torch.tensor([random.randint(-1000, 1000) / 1000 for _ in range(count)], dtype=torch.float64).view(shape)


def gather(own):
    parts = [torch.empty_like(own) for _ in range(RANKS)]
    dist.all_gather(parts, own.detach().contiguous())
    parts[dist.get_rank()] = own
    return torch.cat(parts)


def work(rank, golden, queue):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "29541"
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    tokens = ROWS * STEPS
    mine = slice(rank * tokens, (rank + 1) * tokens)
    f, g, head = (torch.tensor(golden[name], dtype=torch.float64) for name in ("f", "g", "head"))
    f, g = f[mine].clone().requires_grad_(), g[mine].clone().requires_grad_()
    head.requires_grad_()
    labels = torch.tensor(golden["labels"])
    keys, places = gather(g), torch.arange(RANKS * tokens)
    logits = f @ head.T
    scores = g @ keys.T / (WIDTH**0.5 * TEMPERATURE)
    seen = places[None, :] < places[mine][:, None]
    right = labels[None, :] == labels[mine][:, None]
    nothing = -float("inf")
    whole = torch.cat([logits, scores.masked_fill(~seen, nothing)], 1).logsumexp(1)
    hit = logits.gather(1, labels[mine][:, None])
    loss = (whole - torch.cat([hit, scores.masked_fill(~(seen & right), nothing)], 1).logsumexp(1)).sum()
    loss.backward()
    queue.put((rank, {"loss": loss.item(), "f": f.grad.tolist(), "g": g.grad.tolist(), "head": head.grad.tolist()}))
    dist.destroy_process_group()


def main():
    random.seed(3)
    tokens = RANKS * ROWS * STEPS
    golden = {
        "rows": ROWS,
        "steps": STEPS,
        "temperature": TEMPERATURE,
        "labels": [random.randrange(WORDS) for _ in range(tokens)],
        "f": numbers(tokens, WIDTH).tolist(),
        "g": numbers(tokens, WIDTH).tolist(),
        "head": numbers(WORDS, WIDTH).tolist(),
    }
    queue = processes.get_context("spawn").SimpleQueue()
    processes.spawn(work, (golden, queue), RANKS, join=True)
    found = dict(queue.get() for _ in range(RANKS))
    golden["ranks"] = [found[rank] for rank in range(RANKS)]
    json.dump(golden, sys.stdout)
    print()


if __name__ == "__main__":
    main()
