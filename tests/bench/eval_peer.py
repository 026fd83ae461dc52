"""The plain sliding loop that eval/sliding is measured against: one window of 512 tokens at a time, 256 new ones each,
with PyTorch's own modules and the weights of a GPT-2-shaped model folder.

usage: eval_peer.py FOLDER IDS.npy [KNOWN.npy]
With KNOWN the loop is that of knn-transformers (Alon et al. 2022): the inputs of the last feed-forward network of KNOWN's tokens are a
flat FAISS index, and each new token's 1,024 nearest, by squared distances over 10, have a quarter of its probability. Making the index
is not timed.
Prints one JSON line: tokens_per_s, perplexity.
"""

import json
import math
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

WINDOW, STRIDE = 512, 256
K, TEMPERATURE, SHARE = 1024, 10, 0.25
weights = {name.removeprefix("transformer."): w for name, w in load_file(sys.argv[1] + "/model.safetensors").items()}
with open(sys.argv[1] + "/config.json") as file:
    config = json.load(file)
HEADS, LAYERS = config["n_head"], config["n_layer"]


def norm(x, name):
    return F.layer_norm(x, x.shape[-1:], weights[name + ".weight"], weights[name + ".bias"], 1e-5)


def linear(x, name):  # stored as (in, out)
    return F.linear(x, weights[name + ".weight"].t(), weights[name + ".bias"])


def hidden(ids):
    """What the softmax reads, and the last feed-forward network's input."""
    x = weights["wte.weight"][ids] + weights["wpe.weight"][: len(ids)]
    for i in range(LAYERS):
        layer = f"h.{i}."
        q, k, v = linear(norm(x, layer + "ln_1"), layer + "attn.c_attn").view(len(ids), 3, HEADS, -1).permute(1, 2, 0, 3)
        y = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        x = x + linear(y.transpose(0, 1).reshape(len(ids), -1), layer + "attn.c_proj")
        key = norm(x, layer + "ln_2")
        x = x + linear(F.gelu(linear(key, layer + "mlp.c_fc"), approximate="tanh"), layer + "mlp.c_proj")
    return norm(x, "ln_f"), key


def windows(stream):
    """Each window's inputs and targets, and how many of its last targets no window before had."""
    scored, at = 0, 0
    while scored < len(stream) - 1:
        inputs, targets = stream[at : at + WINDOW], stream[at + 1 : at + WINDOW + 1]
        new = at + len(targets) - scored
        yield inputs[: len(targets)], targets, new
        scored, at = scored + new, at + STRIDE


def tokens(path):
    return torch.from_numpy(np.load(path).astype("int64"))


stream, index, values = tokens(sys.argv[2]), None, None
with torch.inference_mode():
    if len(sys.argv) > 3:
        import faiss

        known = [(hidden(inputs)[1][-new:], targets[-new:]) for inputs, targets, new in windows(tokens(sys.argv[3]))]
        index = faiss.IndexFlatL2(config["n_embd"])
        index.add(torch.cat([keys for keys, _ in known]).numpy())
        values = torch.cat([targets for _, targets in known])

    nats = 0.0
    start = time.perf_counter()
    for inputs, targets, new in windows(stream):
        states, keys = hidden(inputs)
        log_probs = F.log_softmax(states[-new:] @ weights["wte.weight"].t(), -1)
        if index is not None:
            distances, rows = index.search(keys[-new:].numpy(), K)
            shares = torch.softmax(-torch.from_numpy(distances) / TEMPERATURE, -1)
            of_store = torch.zeros_like(log_probs).scatter_add_(1, values[torch.from_numpy(rows)], shares).log()
            log_probs = torch.logaddexp(of_store + math.log(SHARE), log_probs + math.log(1 - SHARE))
        nats += F.nll_loss(log_probs, targets[-new:], reduction="sum").item()
    seconds = time.perf_counter() - start
scored = len(stream) - 1
print(json.dumps({"tokens_per_s": scored / seconds, "perplexity": float(np.exp(nats / scored))}))
