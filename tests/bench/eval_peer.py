"""The plain sliding loop that eval/sliding is measured against: one window of 512 tokens at a time, 256 new ones each,
with PyTorch's own modules and the weights of a GPT-2-shaped model folder.

usage: eval_peer.py FOLDER IDS.npy
Prints one JSON line: tokens_per_s, perplexity.
"""

import json
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

WINDOW, STRIDE = 512, 256
weights = {name.removeprefix("transformer."): w for name, w in load_file(sys.argv[1] + "/model.safetensors").items()}
with open(sys.argv[1] + "/config.json") as file:
    config = json.load(file)
HEADS, LAYERS = config["n_head"], config["n_layer"]


def norm(x, name):
    return F.layer_norm(x, x.shape[-1:], weights[name + ".weight"], weights[name + ".bias"], 1e-5)


def linear(x, name):  # stored as (in, out)
    return F.linear(x, weights[name + ".weight"].t(), weights[name + ".bias"])


def logits(ids):
    x = weights["wte.weight"][ids] + weights["wpe.weight"][: len(ids)]
    for i in range(LAYERS):
        layer = f"h.{i}."
        q, k, v = linear(norm(x, layer + "ln_1"), layer + "attn.c_attn").view(len(ids), 3, HEADS, -1).permute(1, 2, 0, 3)
        y = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        x = x + linear(y.transpose(0, 1).reshape(len(ids), -1), layer + "attn.c_proj")
        h = F.gelu(linear(norm(x, layer + "ln_2"), layer + "mlp.c_fc"), approximate="tanh")
        x = x + linear(h, layer + "mlp.c_proj")
    return norm(x, "ln_f") @ weights["wte.weight"].t()


stream = torch.from_numpy(np.load(sys.argv[2]).astype("int64"))
nats, scored, at = 0.0, 0, 0
start = time.perf_counter()
with torch.inference_mode():
    while scored < len(stream) - 1:
        inputs, targets = stream[at : at + WINDOW], stream[at + 1 : at + WINDOW + 1]
        inputs = inputs[: len(targets)]
        new = at + len(targets) - scored  # targets not yet scored, the window's last ones
        losses = F.cross_entropy(logits(inputs)[-new:], targets[-new:], reduction="sum")
        nats, scored, at = nats + losses.item(), scored + new, at + STRIDE
seconds = time.perf_counter() - start
print(json.dumps({"tokens_per_s": scored / seconds, "perplexity": float(np.exp(nats / scored))}))
