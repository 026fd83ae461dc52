"""What transformers makes of a GPT-2 folder, and GPT-2 folders as transformers makes them.

hf_gpt2.py loss FOLDER ID...     prints GPT2LMHeadModel's mean loss on the ids, in nats
hf_gpt2.py make FOLDER ID...     writes FOLDER/NAME for each kind of folder seen in the wild, a model of bytes at
                                 random, and prints a line for each: NAME and its loss on the ids
hf_gpt2.py resave FOLDER OTHER   reads FOLDER, writes it to OTHER
hf_gpt2.py tokenizer A B         a small byte-level BPE: A/tokenizer.json, and B/vocab.json with B/merges.txt
Exit 77 and a reason where transformers is missing.
"""

import os
import sys

from peer_modules import modules_or_skip

with modules_or_skip():
    import torch
    from safetensors.torch import load_file, save_file
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel


def loss(model, ids):
    model.eval()
    batch = torch.tensor([ids])
    with torch.no_grad():
        return model.float()(input_ids=batch, labels=batch).loss.item()


def change_tensors(folder, change):
    path = os.path.join(folder, "model.safetensors")
    save_file(change(load_file(path)), path, metadata={"format": "pt"})


def bare(tensors):
    """As the first GPT-2 folders of the hub: no prefix, the masks among the weights."""
    plain = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    layers = 1 + max(int(name.split(".")[1]) for name in plain if name.startswith("h."))
    for layer in range(layers):
        plain[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 24, 24).tril()
        plain[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    return plain


def with_head(tensors):
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"].clone()
    return tensors


KINDS = {
    "prefixed": ({}, None),
    "bare": ({}, bare),
    "with_head": ({}, with_head),
    "untied": ({"tie_word_embeddings": False}, None),
    "exact_gelu": ({"activation_function": "gelu", "n_inner": 40}, None),
    "relu": ({"activation_function": "relu", "layer_norm_epsilon": 1e-3}, None),
    "half": ({}, "half"),
}


def make(folder, ids):
    for name, (options, change) in KINDS.items():
        torch.manual_seed(7)
        config = GPT2Config(
            vocab_size=256, n_positions=24, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3, **options
        )
        model = GPT2LMHeadModel(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
        if change == "half":
            model, change = model.to(torch.bfloat16), None
        path = os.path.join(folder, name)
        model.save_pretrained(path)
        if change:
            change_tensors(path, change)
        print(name, repr(loss(model, ids)))


def make_tokenizer(whole, parts):
    tokenizer = ByteLevelBPETokenizer(add_prefix_space=False)
    text = ["the cat sat on the mat and the cat sat on the cat", "a mat, a cat: that is that"]
    tokenizer.train_from_iterator(text, vocab_size=280, min_frequency=2, special_tokens=["<|endoftext|>"])
    tokenizer.save(os.path.join(whole, "tokenizer.json"))
    tokenizer.save_model(parts)


def main(command, folder, *rest):
    if command == "loss":
        print(repr(loss(GPT2LMHeadModel.from_pretrained(folder), [int(i) for i in rest])))
    elif command == "make":
        make(folder, [int(i) for i in rest])
    elif command == "tokenizer":
        make_tokenizer(folder, rest[0])
    elif command == "resave":
        GPT2LMHeadModel.from_pretrained(folder).save_pretrained(rest[0])


try:
    main(*sys.argv[1:])
except Exception as error:  # stderr is full of progress bars
    print(f"{type(error).__name__}: {error}")
    sys.exit(1)
