#!/usr/bin/env python3
"""translate_peer lines N SEED | convert MODEL FOLDER | run FOLDER TOKENIZER LINES BEAM BATCH MOST THREADS | same OURS THEIRS

lines: N lines of words that are made up. convert: the weights of an encoder-decoder (model(5)) as a model of CTranslate2.
run: translates LINES with it, float32, and prints JSON: seconds, and the tokens of the best translation of each line. same:
exits 1 unless what `sample --json` and run gave is the same for 19 lines of 20."""
import json
import os
import random
import sys
import time

import numpy as np


def lines(count, seed):
    made = random.Random(0)
    words = ["".join(made.choices("abcdefghijklmnop", k=made.randint(2, 7))) for _ in range(8000)]
    draw = random.Random(seed)
    for _ in range(count):
        print(*draw.choices(words, k=draw.randint(3, 20)))


def sinusoids(rows, d):
    angle = np.arange(rows)[:, None] * np.exp(-np.log(1e4) / (d // 2 - 1) * np.arange(d // 2))
    return np.concatenate([np.sin(angle), np.cos(angle)], 1).astype(np.float32)


def convert(model, folder):
    import safetensors.numpy
    from ctranslate2.specs import TransformerSpec, common_spec

    shape = json.load(open(model + "/config.json"))["tessera"]["model"]
    assert shape["activation"] == "relu" and shape["positions"] == "sinusoidal" and shape["norm_epsilon"] == 1e-5
    weights = safetensors.numpy.load_file(model + "/model.safetensors")
    weight = lambda name: weights["encoder-decoder." + name]
    layers = shape["layers"]
    spec = TransformerSpec.from_config((layers, layers), shape["heads"], pre_norm=shape["norm"] == "pre",
                                       activation=common_spec.Activation.RELU)

    def linear(to, name):
        to.weight, to.bias = weight(name + ".weight"), weight(name + ".bias")

    def norm(to, name):
        to.gamma, to.beta = weight(name + ".weight"), weight(name + ".bias")

    def block(to, name):
        norm(to.self_attention.layer_norm, name + "ln_1")
        linear(to.self_attention.linear[0], name + "attn.c_attn")
        linear(to.self_attention.linear[1], name + "attn.c_proj")
        norm(to.ffn.layer_norm, name + "ln_2")
        linear(to.ffn.linear_0, name + "mlp.c_fc")
        linear(to.ffn.linear_1, name + "mlp.c_proj")

    table = sinusoids(1024, shape["d_model"])
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = weight("wte.weight")
    spec.encoder.position_encodings.encodings = spec.decoder.position_encodings.encodings = table
    for i in range(layers):
        block(spec.encoder.layer[i], f"encoder.h.{i}.")
        to, name = spec.decoder.layer[i], f"h.{i}."
        block(to, name)
        norm(to.attention.layer_norm, name + "ln_x")
        linear(to.attention.linear[0], name + "cross.c_q")
        linear(to.attention.linear[1], name + "cross.c_kv")
        linear(to.attention.linear[2], name + "cross.c_proj")
    norm(spec.encoder.layer_norm, "encoder.ln_f")
    norm(spec.decoder.layer_norm, "ln_f")
    words = weights["lm_head.weight"]
    spec.decoder.projection.weight = words
    names = [str(i) for i in range(len(words))]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.unk_token = names[0]
    spec.config.bos_token = spec.config.eos_token = spec.config.decoder_start_token = names[-1]
    spec.validate()
    os.makedirs(folder)
    spec.save(folder)


def run(folder, tokenizer, path, beam, batch, most, threads):
    import ctranslate2
    import tokenizers

    encode = tokenizers.Tokenizer.from_file(tokenizer)
    end = encode.get_vocab_size() - 1
    sources = [[str(i) for i in encode.encode(line.rstrip("\n")).ids + [end]] for line in open(path)]
    model = ctranslate2.Translator(folder, device="cpu", compute_type="float32", inter_threads=1, intra_threads=threads)
    options = dict(beam_size=beam, max_batch_size=batch, max_decoding_length=most, length_penalty=1)
    model.translate_batch(sources[:batch], **options)
    start = time.perf_counter()
    made = model.translate_batch(sources, **options)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "tokens": [[int(i) for i in one.hypotheses[0]] for one in made]}))


def same(ours, theirs):
    ours = [json.loads(line)["tokens"] for line in open(ours)]
    theirs = json.load(open(theirs))["tokens"]
    equal = sum(a == b for a, b in zip(ours, theirs, strict=True))
    if equal < 0.95 * len(ours):
        sys.exit(f"translate_peer: only {equal} of {len(ours)} translations are the same")


if sys.argv[1] == "lines":
    lines(int(sys.argv[2]), int(sys.argv[3]))
elif sys.argv[1] == "convert":
    convert(*sys.argv[2:])
elif sys.argv[1] == "same":
    same(*sys.argv[2:])
else:
    run(*sys.argv[2:5], *map(int, sys.argv[5:]))
