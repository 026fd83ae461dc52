"""Transformer-XL's model.pt, tiny and at random: modules of the names and attributes that its PyTorch code pickles, and a
plain reading of the paper's formulas, token by token. checkpoints.py writes them."""

import math
import sys
import types

import torch
import torch.serialization
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, LAYERS, HEADS, INNER = 40, 8, 2, 2, 12

# Classes of a module that nobody has who reads the file.
theirs = types.ModuleType("mem_transformer")
for name in ["MemTransformerLM", "AdaptiveEmbedding", "RelPartialLearnableDecoderLayer", "RelPartialLearnableMultiHeadAttn", "PositionwiseFF", "ProjectedAdaptiveLogSoftmax", "PositionalEmbedding"]:
    setattr(theirs, name, type(name, (nn.Module,), {"__module__": "mem_transformer"}))
sys.modules["mem_transformer"] = theirs


# torch's streams have the source of modules' classes beside their names: not of these.
def no_source(_):
    raise OSError


torch.serialization.get_source_lines_and_file = no_source


def part(kind, **attributes):
    """A module of that class with these attributes, parameters and modules among them."""
    module = getattr(theirs, kind)()
    for name, value in attributes.items():
        setattr(module, name, value)
    return module


def lists(tensors, kind=nn.ParameterList):
    return kind([nn.Parameter(t) if kind is nn.ParameterList else t for t in tensors])


def model(cutoffs, div_val, tied, pre_norm, clamp):
    torch.manual_seed(6)
    edges = [0, *cutoffs, VOCABULARY]
    bands = range(len(cutoffs) + 1)
    one_table = div_val == 1
    sizes = [VOCABULARY] if one_table else [edges[i + 1] - edges[i] for i in bands]
    widths = [WIDTH // div_val**i for i in range(len(sizes))]
    embeddings = [nn.Embedding(n, d) for n, d in zip(sizes, widths)]
    projections = [] if one_table else [torch.randn(WIDTH, d) for d in widths]
    words = part(
        "AdaptiveEmbedding",
        n_token=VOCABULARY,
        d_embed=WIDTH,
        d_proj=WIDTH,
        cutoffs=[*cutoffs, VOCABULARY],
        cutoff_ends=edges,
        div_val=div_val,
        emb_scale=WIDTH**0.5,
        emb_layers=nn.ModuleList(embeddings),
        emb_projs=lists(projections),
    )
    softmax = part(
        "ProjectedAdaptiveLogSoftmax",
        n_clusters=len(cutoffs),
        cutoffs=[*cutoffs, VOCABULARY],
        div_val=div_val,
        keep_order=False,
        out_layers=nn.ModuleList([nn.Linear(d, n) for n, d in zip(sizes, widths)]),
        out_projs=lists([] if one_table else [torch.randn(WIDTH, d) for d in widths]),
    )
    if tied:
        for i, layer in enumerate(embeddings):
            softmax.out_layers[i].weight = layer.weight
            if i > 0:  # as proj_share_all_but_first has it
                softmax.out_projs[i] = words.emb_projs[i]
    if cutoffs:
        softmax.cluster_weight = nn.Parameter(torch.randn(len(cutoffs), WIDTH))
        softmax.cluster_bias = nn.Parameter(torch.randn(len(cutoffs)))
    layers = []
    for _ in range(LAYERS):
        attention = part(
            "RelPartialLearnableMultiHeadAttn",
            n_head=HEADS,
            d_head=WIDTH // HEADS,
            pre_lnorm=pre_norm,
            qkv_net=nn.Linear(WIDTH, 3 * WIDTH, bias=False),
            r_net=nn.Linear(WIDTH, WIDTH, bias=False),
            o_net=nn.Linear(WIDTH, WIDTH, bias=False),
            drop=nn.Dropout(0.1),
            layer_norm=nn.LayerNorm(WIDTH),
        )
        core = nn.Sequential(nn.Linear(WIDTH, INNER), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(INNER, WIDTH), nn.Dropout(0.1))
        network = part("PositionwiseFF", d_model=WIDTH, d_inner=INNER, pre_lnorm=pre_norm, CoreNet=core, layer_norm=nn.LayerNorm(WIDTH))
        layers.append(part("RelPartialLearnableDecoderLayer", dec_attn=attention, pos_ff=network))
    positions = part("PositionalEmbedding", demb=WIDTH)
    positions.register_buffer("inv_freq", 1 / 10000 ** (torch.arange(0.0, WIDTH, 2) / WIDTH))
    whole = part(
        "MemTransformerLM",
        n_token=VOCABULARY,
        d_embed=WIDTH,
        d_model=WIDTH,
        n_head=HEADS,
        d_head=WIDTH // HEADS,
        n_layer=LAYERS,
        tgt_len=16,
        mem_len=24,
        ext_len=0,
        max_klen=40,
        attn_type=0,
        same_length=False,
        clamp_len=clamp,
        word_emb=words,
        drop=nn.Dropout(0.1),
        layers=nn.ModuleList(layers),
        crit=softmax,
        pos_emb=positions,
        r_w_bias=nn.Parameter(torch.randn(HEADS, WIDTH // HEADS)),
        r_r_bias=nn.Parameter(torch.randn(HEADS, WIDTH // HEADS)),
    )
    with torch.no_grad():
        for weight in whole.parameters():
            weight.copy_(torch.randn(weight.shape) * 0.4 + (1 if weight.shape == (WIDTH,) else 0))
    return whole


def embedded(m, ids):
    words, x = m.word_emb, []
    for word in ids:
        if words.div_val == 1:
            x.append(words.emb_layers[0].weight[word])
            continue
        band = sum(word >= edge for edge in words.cutoffs)
        x.append(words.emb_projs[band] @ words.emb_layers[band].weight[word - words.cutoff_ends[band]])
    return torch.stack(x) * words.emb_scale


def attended(m, a, x):
    heads = lambda y: y.unflatten(1, (HEADS, -1))  # noqa: E731
    q, k, v = (heads(y) for y in a.qkv_net(x).chunk(3, 1))
    out = torch.zeros_like(q)
    for i in range(len(x)):
        distances = torch.arange(i, -1, -1).double()
        if m.clamp_len > 0:
            distances = distances.clamp(max=m.clamp_len)
        angles = distances[:, None] * m.pos_emb.inv_freq
        r = heads(a.r_net(torch.cat([angles.sin(), angles.cos()], 1)))
        for h in range(HEADS):
            scores = k[: i + 1, h] @ (q[i, h] + m.r_w_bias[h]) + r[:, h] @ (q[i, h] + m.r_r_bias[h])
            out[i, h] = (scores / math.sqrt(WIDTH // HEADS)).softmax(0) @ v[: i + 1, h]
    return a.o_net(out.flatten(1))


def log_probs(m, x):
    """(T, V)"""
    c = m.crit
    n, edges = c.n_clusters, [0, *c.cutoffs]
    of = lambda i, t: t[edges[i] : edges[i + 1]]  # noqa: E731
    parts = []
    for i in range(n + 1):
        layer = c.out_layers[0 if c.div_val == 1 else i]
        weight, bias = (of(i, layer.weight), of(i, layer.bias)) if c.div_val == 1 else (layer.weight, layer.bias)
        y = x if c.div_val == 1 else x @ c.out_projs[i]
        if i > 0:
            parts.append(first[:, -i, None] + F.linear(y, weight, bias).log_softmax(1))
            continue
        scores = F.linear(y, weight, bias)
        if n > 0:
            scores = torch.cat([scores, F.linear(y, c.cluster_weight, c.cluster_bias)], 1)
        first = scores.log_softmax(1)
        parts.append(first[:, : edges[1]])
    return torch.cat(parts, 1)


@torch.no_grad()
def reading(m, ids):
    m = m.double()
    m.pos_emb.inv_freq = 1 / 10000 ** (torch.arange(0, WIDTH, 2).double() / WIDTH)
    x = embedded(m, ids)
    for layer in m.layers:
        a, f = layer.dec_attn, layer.pos_ff
        if a.pre_lnorm:
            x = x + attended(m, a, a.layer_norm(x))
            x = x + f.CoreNet.eval()(f.layer_norm(x))
        else:
            x = a.layer_norm(x + attended(m, a, x))
            x = f.layer_norm(x + f.CoreNet.eval()(x))
    return log_probs(m, x)


def kinds():
    """(name, module, its function of ids) of each."""
    for name, options in {
        "xl_bands": dict(cutoffs=[10, 24], div_val=2, tied=True, pre_norm=False, clamp=-1),
        "xl_table": dict(cutoffs=[10, 24], div_val=1, tied=True, pre_norm=True, clamp=7),
        "xl_plain": dict(cutoffs=[], div_val=1, tied=False, pre_norm=False, clamp=-1),
    }.items():
        yield name, model(**options), lambda ids, options=options: reading(model(**options), ids)
