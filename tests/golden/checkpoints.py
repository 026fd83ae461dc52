"""Checkpoints of other programs' trainers, tiny and at random, and what a plain reading of their models gives.

checkpoints.py COMMAND FOLDER
  golden      writes FOLDER/NAME.pt, and NAME.json: ids, and the negative log-likelihood of each after the first
  corpus      writes small files of torch.save into FOLDER, for tests/fuzz/corpus/pickle
  hostile     writes FOLDER/beside.pt, with a call that makes the file `ran` where a setting stands that nobody reads, and
              FOLDER/weight.pt, where a weight stands
Exit 77 and a reason where torch is missing.
"""

import argparse
import collections
import json
import math
import os
import sys

from peer_modules import modules_or_skip

with modules_or_skip():
    import torch
    from torch.nn import functional as F

import checkpoint_xl  # noqa: E402

VOCABULARY, WIDTH, LAYERS, HEADS, CONTEXT = 40, 8, 2, 2, 32
IDS = [(i * 7 + 3) % VOCABULARY for i in range(30)]


def randoms(shapes, seed, spread=0.4):
    generator = torch.Generator().manual_seed(seed)
    made = {}
    for name, shape in shapes.items():
        values = torch.randn(shape, generator=generator) * spread
        is_norm = name.endswith("norm.weight") or ".ln_" in name and name.endswith(".weight")
        made[name] = values + 1 if is_norm else values
    return made


def nll(log_probs):
    """Of each token after the first; log_probs (T, V) of what follows each token."""
    return -log_probs[:-1].gather(1, torch.tensor(IDS[1:])[:, None])[:, 0]


def attend(q, k, v, heads):
    """Causal attention of (T, d) with d / heads wide heads."""
    steps, width = q.shape
    out = torch.zeros_like(v)
    for h in range(heads):
        part = slice(h * width // heads, (h + 1) * width // heads)
        scores = q[:, part] @ k[:, part].T / math.sqrt(width // heads)
        scores += torch.full((steps, steps), -math.inf).triu(1)
        out[:, part] = scores.softmax(-1) @ v[:, part]
    return out


def norm(x, w, name):
    return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w.get(name + ".bias"), 1e-5)


def linear(x, w, name):
    return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))


# nanoGPT ------------------------------------------------------------------------------------------------------------


def nanogpt_weights(bias):
    shapes = {"transformer.wte.weight": (VOCABULARY, WIDTH), "transformer.wpe.weight": (CONTEXT, WIDTH)}
    for i in range(LAYERS):
        for name, shape in {
            "ln_1": (WIDTH,),
            "attn.c_attn": (3 * WIDTH, WIDTH),
            "attn.c_proj": (WIDTH, WIDTH),
            "ln_2": (WIDTH,),
            "mlp.c_fc": (4 * WIDTH, WIDTH),
            "mlp.c_proj": (WIDTH, 4 * WIDTH),
        }.items():
            shapes[f"transformer.h.{i}.{name}.weight"] = shape
            if bias:
                shapes[f"transformer.h.{i}.{name}.bias"] = shape[:1]
    shapes["transformer.ln_f.weight"] = (WIDTH,)
    if bias:
        shapes["transformer.ln_f.bias"] = (WIDTH,)
    w = randoms(shapes, 3)
    w["lm_head.weight"] = w["transformer.wte.weight"]
    return w


def nanogpt_nll(w):
    w = {name: values.double() for name, values in w.items()}
    x = w["transformer.wte.weight"][IDS] + w["transformer.wpe.weight"][: len(IDS)]
    for i in range(LAYERS):
        h = f"transformer.h.{i}."
        q, k, v = linear(norm(x, w, h + "ln_1"), w, h + "attn.c_attn").split(WIDTH, -1)
        x = x + linear(attend(q, k, v, HEADS), w, h + "attn.c_proj")
        x = x + linear(F.gelu(linear(norm(x, w, h + "ln_2"), w, h + "mlp.c_fc")), w, h + "mlp.c_proj")
    return nll((norm(x, w, "transformer.ln_f") @ w["lm_head.weight"].T).log_softmax(-1))


def nanogpt_checkpoint(w, more):
    arguments = dict(n_layer=LAYERS, n_head=HEADS, n_embd=WIDTH, block_size=CONTEXT, vocab_size=VOCABULARY, dropout=0.1)
    return {
        "model": w,
        "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 6e-4, "params": [0]}]},
        "model_args": arguments | more,
        "iter_num": 120,
        "best_val_loss": torch.tensor(3.25),
        "config": {"out_dir": "out", "compile": True},
    }


# nanoMosaics --------------------------------------------------------------------------------------------------------

SLOTS = 5


def mosaic_weights():
    shapes = {"lm_head.weight": (VOCABULARY, WIDTH), "mosaic.ln_f.weight": (WIDTH,)}
    scalar, memory = (1, HEADS, 1, 1), (1, 1, HEADS, SLOTS, WIDTH // HEADS)
    for i in range(LAYERS):
        for name, shape in {
            "ln_1.weight": (WIDTH,),
            "ln_2.weight": (WIDTH,),
            "attn.k_featurizer.W_k.weight": (WIDTH, WIDTH),
            "attn.k_featurizer.leaky_avg.leaky_key_beta": scalar,
            "attn.k_featurizer.key_scale": scalar,
            "attn.v_featurizer.W_v.weight": (WIDTH, WIDTH),
            "attn.v_featurizer.coef": scalar,
            "attn.v_featurizer.val_scale": scalar,
            "attn.c_proj.weight": (WIDTH, WIDTH),
            "mlp.k_featurizer.W_k.weight": (WIDTH, WIDTH),
            "mlp.k_featurizer.leaky_avg.leaky_key_beta": scalar,
            "mlp.k_featurizer.key_scale": scalar,
            "mlp.P_k": memory,
            "mlp.P_v": memory,
            "mlp.out_scale": scalar,
            "mlp.c_proj.weight": (WIDTH, WIDTH),
        }.items():
            shapes[f"mosaic.h.{i}.{name}"] = shape
    w = randoms(shapes, 4)
    for name in w:
        if name.endswith(("beta", "_scale")):
            w[name] = w[name] / 4  # what is multiplied by 10
    # Beyond the bound of the persistent keys' scale, not beyond that of the others.
    w["mosaic.h.1.mlp.k_featurizer.key_scale"][0, 0] = 0.4
    w["mosaic.wte.weight"] = w["lm_head.weight"]
    return w


def mosaic_keys(x, w, name, power):
    """(heads, T, width): sums that forget, normalised and scaled."""
    raw = (x @ w[name + ".W_k.weight"].T).unflatten(1, (HEADS, -1)).transpose(0, 1)
    decay = (-10 * w[name + ".leaky_avg.leaky_key_beta"].flatten().abs()).exp()
    kept, total = [], torch.zeros_like(raw[:, 0])
    for t in range(raw.shape[1]):
        total = total * decay[:, None] + raw[:, t]
        kept.append(total / (total.norm(dim=-1, keepdim=True) + 1e-10))
    scale = (10 * power * w[name + ".key_scale"].flatten()).clamp(max=5).exp()
    return torch.stack(kept, 1) * scale[:, None, None]


def mosaic_nll(w):
    w = {name: values.double() for name, values in w.items()}
    steps = len(IDS)
    x = w["mosaic.wte.weight"][IDS]
    for i in range(LAYERS):
        h = f"mosaic.h.{i}."
        y = norm(x, w, h + "ln_1")
        k = mosaic_keys(y, w, h + "attn.k_featurizer", 1)
        u = (y @ w[h + "attn.v_featurizer.W_v.weight"].T).unflatten(1, (HEADS, -1)).transpose(0, 1)
        mix = w[h + "attn.v_featurizer.coef"].flatten()[:, None, None]
        v = mix * u[:, :-1] + (1 - mix) * u[:, 1:]
        v = v / (v.norm(dim=-1, keepdim=True) + 1e-10)
        v = v * (10 * w[h + "attn.v_featurizer.val_scale"].flatten()).exp()[:, None, None]
        out = torch.zeros_like(u)
        for t in range(1, steps):
            out[:, t] = ((k[:, t : t + 1] @ k[:, :t].transpose(1, 2)).softmax(-1) @ v[:, :t])[:, 0]
        x = x + out.transpose(0, 1).flatten(1) @ w[h + "attn.c_proj.weight"].T
        k = mosaic_keys(norm(x, w, h + "ln_2"), w, h + "mlp.k_featurizer", 2)
        out = (k @ w[h + "mlp.P_k"][0, 0].transpose(1, 2)).softmax(-1) @ w[h + "mlp.P_v"][0, 0]
        out = out * (10 * w[h + "mlp.out_scale"].flatten()).exp()[:, None, None]
        x = x + out.transpose(0, 1).flatten(1) @ w[h + "mlp.c_proj.weight"].T
    return nll((norm(x, w, "mosaic.ln_f") @ w["lm_head.weight"].T).log_softmax(-1))


# fairseq's transformer_lm ---------------------------------------------------------------------------------------------

CUTOFFS, INNER = [10, 24], 12


def fairseq_weights(kind):
    """kind: `tied` adaptive input and softmax, `untied` ones, or `plain`."""
    edges = [0, *CUTOFFS, VOCABULARY]
    shapes = {}
    for i in range(3 if kind != "plain" else 0):
        shapes[f"decoder.embed_tokens.embeddings.{i}.0.weight"] = (edges[i + 1] - edges[i], WIDTH // 2**i)
        shapes[f"decoder.embed_tokens.embeddings.{i}.1.weight"] = (WIDTH, WIDTH // 2**i)
    if kind == "plain":
        shapes["decoder.embed_tokens.weight"] = (VOCABULARY, WIDTH)
        shapes["decoder.embed_positions.weight"] = (CONTEXT + 2, WIDTH)
    for i in range(LAYERS):
        for name, shape in {
            "self_attn.k_proj": (WIDTH, WIDTH),
            "self_attn.v_proj": (WIDTH, WIDTH),
            "self_attn.q_proj": (WIDTH, WIDTH),
            "self_attn.out_proj": (WIDTH, WIDTH),
            "self_attn_layer_norm": (WIDTH,),
            "fc1": (INNER, WIDTH),
            "fc2": (WIDTH, INNER),
            "final_layer_norm": (WIDTH,),
        }.items():
            shapes[f"decoder.layers.{i}.{name}.weight"] = shape
            shapes[f"decoder.layers.{i}.{name}.bias"] = shape[:1]
    if kind != "tied":
        shapes["decoder.layer_norm.weight"] = shapes["decoder.layer_norm.bias"] = (WIDTH,)
    if kind == "tied":
        shapes["decoder.adaptive_softmax.head.class_proj.weight"] = (2, WIDTH)
    if kind == "untied":
        shapes["decoder.adaptive_softmax.head.weight"] = (CUTOFFS[0] + 2, WIDTH)
        for i in range(2):
            shapes[f"decoder.adaptive_softmax.tail.{i}.0.weight"] = (WIDTH // 2 ** (i + 1), WIDTH)
            shapes[f"decoder.adaptive_softmax.tail.{i}.2.weight"] = (edges[i + 2] - edges[i + 1], WIDTH // 2 ** (i + 1))
    w = randoms(shapes, 5)
    if kind == "tied":
        w["decoder.adaptive_softmax.head.word_proj.weight"] = w["decoder.embed_tokens.embeddings.0.0.weight"]
        for i in range(2):
            w[f"decoder.adaptive_softmax.tail.{i}.0.weight"] = w[f"decoder.embed_tokens.embeddings.{i + 1}.1.weight"]
            w[f"decoder.adaptive_softmax.tail.{i}.2.weight"] = w[f"decoder.embed_tokens.embeddings.{i + 1}.0.weight"]
    w["decoder.version"] = torch.tensor([3.0])
    if kind != "plain":
        w["decoder.embed_positions._float_tensor"] = torch.zeros(1)
        w["decoder.adaptive_softmax.version"] = torch.tensor([1])
    return w


def fairseq_nll(w, kind):
    w = {name: values.double() for name, values in w.items()}
    ids, edges = torch.tensor(IDS), [0, *CUTOFFS, VOCABULARY]
    if kind == "plain":
        x = w["decoder.embed_tokens.weight"][ids]
        positions = w["decoder.embed_positions.weight"][2 : 2 + len(ids)]
    else:
        x = torch.zeros(len(ids), WIDTH).double()
        for i in range(3):
            inside = (ids >= edges[i]) & (ids < edges[i + 1])
            table = w[f"decoder.embed_tokens.embeddings.{i}.0.weight"]
            x[inside] = table[ids[inside] - edges[i]] @ w[f"decoder.embed_tokens.embeddings.{i}.1.weight"].T
        half = WIDTH // 2
        rates = torch.exp(torch.arange(half).double() * -(math.log(10000) / (half - 1)))
        angles = (torch.arange(len(ids)).double() + 2)[:, None] * rates
        # The table is a file of float32, as any.
        positions = torch.cat([angles.sin(), angles.cos()], 1).float().double()
    x = x * math.sqrt(WIDTH) + positions
    for i in range(LAYERS):
        h = f"decoder.layers.{i}."
        y = norm(x, w, h + "self_attn_layer_norm")
        q, k, v = (linear(y, w, h + f"self_attn.{part}_proj") for part in "qkv")
        x = x + linear(attend(q, k, v, HEADS), w, h + "self_attn.out_proj")
        x = x + linear(linear(norm(x, w, h + "final_layer_norm"), w, h + "fc1").relu(), w, h + "fc2")
    if kind != "tied":
        x = norm(x, w, "decoder.layer_norm")
    if kind == "plain":
        return nll((x @ w["decoder.embed_tokens.weight"].T).log_softmax(-1))
    softmax = "decoder.adaptive_softmax."
    if kind == "tied":
        head = torch.cat([w[softmax + "head.word_proj.weight"], w[softmax + "head.class_proj.weight"]])
    else:
        head = w[softmax + "head.weight"]
    first = (x @ head.T).log_softmax(-1)
    parts = [first[:, : CUTOFFS[0]]]
    for i in range(2):
        project = w[softmax + f"tail.{i}.0.weight"]
        hidden = x @ (project if kind == "tied" else project.T)
        words = (hidden @ w[softmax + f"tail.{i}.2.weight"].T).log_softmax(-1)
        parts.append(first[:, CUTOFFS[0] + i : CUTOFFS[0] + i + 1] + words)
    return nll(torch.cat(parts, 1))


def fairseq_checkpoint(w, kind):
    arguments = dict(
        arch="transformer_lm_wiki103",
        task="language_modeling",
        tokens_per_sample=CONTEXT,
        decoder_embed_dim=WIDTH,
        decoder_ffn_embed_dim=INNER,
        decoder_layers=LAYERS,
        decoder_attention_heads=HEADS,
        dropout=0.3,
        attention_dropout=0.1,
        activation_fn="relu",
        decoder_learned_pos=kind == "plain",
        share_decoder_input_output_embed=kind == "plain",
        lr=[1.0],
        knn_keytype="model_output" if kind == "tied" else None,
    )
    if kind != "plain":
        edges = ",".join(map(str, CUTOFFS))
        arguments |= dict(adaptive_input=True, adaptive_input_cutoff=edges, adaptive_softmax_cutoff=edges)
        arguments |= dict(adaptive_input_factor=2, adaptive_softmax_factor=2.0, adaptive_softmax_dropout=0.2)
    return {
        "args": argparse.Namespace(**arguments),
        "model": collections.OrderedDict(w),
        "optimizer_history": [{"criterion_name": "AdaptiveLoss", "num_updates": 7, "lr_scheduler_state": {"best": None}}],
        "extra_state": {"train_iterator": {"epoch": 2}, "val_loss": 4.5},
        "last_optimizer_state": None,
    }


# --------------------------------------------------------------------------------------------------------------------


def made():
    """(name, checkpoint, reference, how it is saved) of each."""
    plain, biased, mosaic = nanogpt_weights(False), nanogpt_weights(True), mosaic_weights()
    compiled = collections.OrderedDict(("_orig_mod." + name, values) for name, values in biased.items())
    yield "nanogpt", nanogpt_checkpoint(compiled, {"bias": True}), nanogpt_nll(biased), {}
    plain = collections.OrderedDict(plain)
    stream = {"_use_new_zipfile_serialization": False}
    yield "nanogpt_stream", nanogpt_checkpoint(plain, {"bias": False}), nanogpt_nll(plain), stream
    mosaic = collections.OrderedDict(mosaic)
    more = {"bias": False, "pmem_count": 1, "pmem_size": SLOTS}
    yield "nanomosaics", nanogpt_checkpoint(mosaic, more), mosaic_nll(mosaic), {}
    for kind in "tied", "untied", "plain":
        w = fairseq_weights(kind)
        yield "fairseq_" + kind, fairseq_checkpoint(w, kind), fairseq_nll(w, kind), stream if kind == "plain" else {}
    for kind, module, log_probs in checkpoint_xl.kinds():
        yield kind, module, nll(log_probs(IDS)), stream if kind == "xl_table" else {}


def golden(folder):
    os.makedirs(folder, exist_ok=True)
    for name, checkpoint, expected, how in made():
        torch.save(checkpoint, os.path.join(folder, name + ".pt"), **how)
        with open(os.path.join(folder, name + ".json"), "w") as file:
            json.dump({"ids": IDS, "nll": expected.tolist()}, file)
            file.write("\n")


def corpus(folder):
    os.makedirs(folder, exist_ok=True)
    shared = torch.arange(6.0)
    values = {
        "state": collections.OrderedDict(a=shared.view(2, 3), b=shared[1:3].half(), c=shared.view(2, 3).T),
        "more": {"types": [torch.zeros(2, dtype=t) for t in (torch.bfloat16, torch.float64, torch.int64, torch.bool)]},
        "settings": {"args": argparse.Namespace(lr=0.1, name="a", sizes=[1, 2**70, -3]), "model": {}, "set": {1, 2}},
        "module": torch.nn.Linear(2, 1),
        "nanogpt": {"model": {"transformer.wte.weight": shared.view(3, 2)}, "model_args": {"n_layer": 1, "n_head": 1, "n_embd": 2, "block_size": 4, "vocab_size": 3}},
    }
    for name, value in values.items():
        torch.save(value, os.path.join(folder, name + ".zip"))
        torch.save(value, os.path.join(folder, name + ".stream"), _use_new_zipfile_serialization=False)


class Runs:
    def __reduce__(self):
        return os.system, ("touch ran",)


def hostile(folder):
    w = nanogpt_weights(True)
    checkpoint = nanogpt_checkpoint(w, {"bias": True})
    torch.save(checkpoint | {"config": Runs()}, os.path.join(folder, "beside.pt"))
    w["transformer.wpe.weight"] = Runs()
    torch.save(checkpoint, os.path.join(folder, "weight.pt"))


{"golden": golden, "corpus": corpus, "hostile": hostile}.get(sys.argv[1], lambda folder: None)(sys.argv[2] if len(sys.argv) > 2 else "")
