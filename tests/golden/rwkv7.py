"""RWKV-7 in files of RWKV-LM and in folders of flash-linear-attention, tiny and at random, and what a plain reading
gives: token by token, in float64, after RWKV-LM's rwkv_v7_numpy.py.

rwkv7.py COMMAND ARG...
  golden FOLDER            writes FOLDER/checkpoints/rwkv7.pth and rwkv7.json, and FOLDER/families/rwkv7 with nll.json
  loss FILE,... ID...      prints a line for each file of RWKV-LM (.pth or .safetensors): the mean loss of the ids
Exit 77 and a reason where torch or safetensors is missing.
"""

import json
import os
import sys

from peer_modules import modules_or_skip

with modules_or_skip():
    import numpy as np
    import torch
    from safetensors.torch import load_file, save_file

VOCABULARY, WIDTH, HEADS, LAYERS, INNER = 64, 16, 4, 2, 40
RANKS, FLA_RANKS = dict(w=5, a=6, v=3, g=7), dict(w=32, a=32, v=32, g=32)
IDS = [(i * 7 + 3) % VOCABULARY for i in range(30)]
FLA_EPSILON = 1.6e-4  # times 4 channels a head: 64e-5, that of the heads' norms


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer_norm(x, w, name, epsilon):
    return (x - x.mean()) / (x.var() + epsilon) ** 0.5 * w[name + ".weight"] + w[name + ".bias"]


def low_rank(x, w, name, f=lambda x: x):
    return f(x @ w[name + "1"]) @ w[name + "2"] + w.get(name + "0", 0)


class Layer:
    """The state of one layer, and its two halves for a token's x (C)."""

    def __init__(self, w, number):
        self.w = {name.split(".", 2)[2]: value for name, value in w.items() if name.startswith(f"blocks.{number}.")}
        self.heads, self.width = self.w["att.r_k"].shape
        self.first = number == 0
        self.before = self.channel_before = 0
        self.state = np.zeros((self.heads, self.width, self.width))  # of a head: (value, key)

    def time_mixing(self, x, first_v):
        w = self.w
        xr, xw, xk, xv, xa, xg = (x + w[f"att.x_{use}"] * (self.before - x) for use in "rwkvag")
        self.before = x
        r, k, v = w["att.receptance.weight"] @ xr, w["att.key.weight"] @ xk, w["att.value.weight"] @ xv
        decay = np.exp(-np.exp(-0.5) * sigmoid(low_rank(xw, w, "att.w", np.tanh)))
        if self.first:
            first_v = v
        else:
            v = v + (first_v - v) * sigmoid(low_rank(xv, w, "att.v"))
        a, g = sigmoid(low_rank(xa, w, "att.a")), low_rank(xg, w, "att.g", sigmoid)
        removed = k * w["att.k_k"]
        k = k * (1 + (a - 1) * w["att.k_a"])
        out = np.zeros_like(v)
        for h in range(self.heads):
            of = slice(h * self.width, (h + 1) * self.width)
            kk = removed[of] / np.linalg.norm(removed[of])
            s = self.state[h]
            self.state[h] = s * decay[of] - np.outer(s @ kk, kk * a[of]) + np.outer(v[of], k[of])
            y = self.state[h] @ r[of]
            y = (y - y.mean()) / (y.var() + 64e-5) ** 0.5 * w["att.ln_x.weight"][of] + w["att.ln_x.bias"][of]
            out[of] = y + (r[of] * k[of] * w["att.r_k"][h]).sum() * v[of]
        return w["att.output.weight"] @ (out * g), first_v

    def channel_mixing(self, x):
        w, mixed = self.w, x + self.w["ffn.x_k"] * (self.channel_before - x)
        self.channel_before = x
        return w["ffn.value.weight"] @ np.maximum(w["ffn.key.weight"] @ mixed, 0) ** 2


def nll(tensors, ids, epsilon=1e-5):
    """Of each token after the first, for RWKV-LM's tensors by name."""
    w = {name: value.double().squeeze().numpy() for name, value in tensors.items()}
    count = max(int(name.split(".")[1]) for name in w if name.startswith("blocks.")) + 1
    layers, found = [Layer(w, i) for i in range(count)], []
    for now, after in zip(ids, ids[1:]):
        x, first_v = layer_norm(w["emb.weight"][now], w, "blocks.0.ln0", epsilon), None
        for i, layer in enumerate(layers):
            change, first_v = layer.time_mixing(layer_norm(x, w, f"blocks.{i}.ln1", epsilon), first_v)
            x = x + change
            x = x + layer.channel_mixing(layer_norm(x, w, f"blocks.{i}.ln2", epsilon))
        logits = w["head.weight"] @ layer_norm(x, w, "ln_out", epsilon)
        found.append(float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[after]))
    return found


def shapes(ranks):
    """Of RWKV-LM's tensors, in the order of its modules; layer 0's v0, v1 and v2 are not used."""
    yield "emb.weight", (VOCABULARY, WIDTH)
    one = (1, 1, WIDTH)
    for i in range(LAYERS):
        block = f"blocks.{i}."
        for norm in ["ln1", "ln2"] + ["ln0"] * (i == 0):
            yield block + norm + ".weight", (WIDTH,)
            yield block + norm + ".bias", (WIDTH,)
        for use in "rwkvag":
            yield f"{block}att.x_{use}", one
        yield block + "att.r_k", (HEADS, WIDTH // HEADS)
        for use, rank in ranks.items():
            yield f"{block}att.{use}1", (WIDTH, rank)
            yield f"{block}att.{use}2", (rank, WIDTH)
            if use != "g":
                yield f"{block}att.{use}0", one
        for name in ["k_k", "k_a"]:
            yield f"{block}att.{name}", one
        for name in ["receptance", "key", "value", "output"]:
            yield f"{block}att.{name}.weight", (WIDTH, WIDTH)
        yield block + "att.ln_x.weight", (WIDTH,)
        yield block + "att.ln_x.bias", (WIDTH,)
        yield block + "ffn.x_k", one
        yield block + "ffn.key.weight", (INNER, WIDTH)
        yield block + "ffn.value.weight", (WIDTH, INNER)
    for name in ["ln_out.weight", "ln_out.bias"]:
        yield name, (WIDTH,)
    yield "head.weight", (VOCABULARY, WIDTH)


def random_file(ranks):
    generator, made = torch.Generator().manual_seed(11), {}
    for name, shape in shapes(ranks):
        values = torch.randn(shape, generator=generator) * 0.4
        is_scale = ".ln" in name and name.endswith("weight") or name.endswith(("k_k", "k_a")) or name == "ln_out.weight"
        made[name] = (values + is_scale).to(torch.bfloat16)
    return made


FLA = {
    "emb.weight": "model.embeddings.weight",
    "head.weight": "lm_head.weight",
    "ln_out": "model.norm",
    "blocks": "model.layers",
    "ln0": "pre_norm",
    "ln1": "attn_norm",
    "ln2": "ffn_norm",
    "att": "attn",
    "receptance": "r_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "o_proj",
    "ln_x": "g_norm",
}


def fla_name(name):
    """As fla's convert_from_rwkv7.py names the tensor."""
    if name in FLA:
        return FLA[name]
    parts = name.split(".")
    if parts[-1] in [use + number for use in RANKS for number in "012"]:
        end = {"0": "lora.2.bias", "1": "lora.0.weight", "2": "lora.2.weight"}[parts[-1][1]]
        parts[-1] = f"{parts[-1][0]}_lora.{end}"
    ffn = "ffn" in parts
    return ".".join(part if ffn and part in ["key", "value"] else FLA.get(part, part) for part in parts)


def write_fla(folder):
    tensors, folder = random_file(FLA_RANKS), os.path.join(folder, "families", "rwkv7")
    os.makedirs(folder, exist_ok=True)
    made = {}
    for name, value in tensors.items():
        if name.startswith("blocks.0.att.v") and name[-1] in "012":
            continue
        if name[-1] in "12" and name[-2] in RANKS:
            value = value.T.contiguous()
        keeps = ".att.x_" in name
        made[fla_name(name)] = value.flatten() if value.dim() == 3 and not keeps else value
    save_file(made, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    config = {
        "architectures": ["RWKV7ForCausalLM"],
        "attn": None,
        "attn_mode": "chunk",
        "a_low_rank_dim": FLA_RANKS["a"],
        "bos_token_id": None,
        "decay_low_rank_dim": FLA_RANKS["w"],
        "eos_token_id": None,
        "fuse_norm": True,
        "gate_low_rank_dim": FLA_RANKS["g"],
        "head_dim": WIDTH // HEADS,
        "hidden_act": "sqrelu",
        "hidden_ratio": INNER / WIDTH,
        "hidden_size": WIDTH,
        "initializer_range": 0.02,
        "intermediate_size": INNER,
        "max_position_embeddings": 2048,
        "model_type": "rwkv7",
        "norm_bias": True,
        "norm_eps": FLA_EPSILON,
        "norm_first": True,
        "num_heads": 32,  # beside head_dim it is not read; fla's converter leaves that of another width
        "num_hidden_layers": LAYERS,
        "pad_token_id": None,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "v_low_rank_dim": FLA_RANKS["v"],
        "value_dim": [WIDTH] * LAYERS,
        "vocab_size": VOCABULARY,
    }
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file, indent=2)
        file.write("\n")
    write_nll(os.path.join(folder, "nll.json"), tensors, FLA_EPSILON)


def write_nll(path, tensors, epsilon=1e-5):
    with open(path, "w") as file:
        json.dump({"ids": IDS, "nll": nll(tensors, IDS, epsilon)}, file)
        file.write("\n")


def golden(folder):
    write_fla(folder)
    os.makedirs(os.path.join(folder, "checkpoints"), exist_ok=True)
    path = os.path.join(folder, "checkpoints", "rwkv7")
    torch.save(random_file(RANKS), path + ".pth")
    write_nll(path + ".json", random_file(RANKS))


def loss(files, *ids):
    for path in files.split(","):
        read = load_file if path.endswith(".safetensors") else lambda path: torch.load(path, weights_only=True)
        print(repr(float(np.mean(nll(read(path), [int(i) for i in ids])))))


{"golden": golden, "loss": loss}.get(sys.argv[1], lambda *_: None)(*sys.argv[2:])
