"""mamba2_numbers.py FOLDER: writes a small random Mamba2ForCausalLM of transformers as a model of Tessera, and nll.json: the
negative log-likelihood of each token of a text by transformers, in double precision. It wrote the folder mamba2 beside it.
Exit 77 and a reason where transformers is missing."""

import json
import os
import sys

from peer_modules import modules_or_skip

with modules_or_skip():
    import torch
    from safetensors.torch import save_file

    from transformers import Mamba2Config, Mamba2ForCausalLM

WIDTH, HEADS, STATE, LAYERS, WORDS, EXPAND, TAPS = 16, 4, 6, 2, 64, 2, 4
MODULES = {
    "backbone.embeddings.": "mamba2.wte.",
    "backbone.layers.": "mamba2.h.",
    "backbone.norm_f.": "mamba2.ln_f.",
    ".mixer.in_proj.": ".mixer.c_in.",
    ".mixer.out_proj.": ".mixer.c_proj.",
    ".mixer.conv1d.": ".mixer.convolution.",
    ".mixer.A_log": ".mixer.a_log",
    ".mixer.dt_bias": ".mixer.a_bias",
    ".mixer.D": ".mixer.skip",
}


def renamed(name):
    for theirs, ours in MODULES.items():
        name = name.replace(theirs, ours)
    return name if ".mixer." in name else name.replace(".norm.", ".ln_1.")


torch.manual_seed(8)
config = Mamba2Config(
    hidden_size=WIDTH, num_heads=HEADS, head_dim=EXPAND * WIDTH // HEADS, state_size=STATE, num_hidden_layers=LAYERS,
    vocab_size=WORDS, expand=EXPAND, conv_kernel=TAPS, n_groups=1, use_bias=False, use_conv_bias=True, chunk_size=8,
    tie_word_embeddings=False, layer_norm_epsilon=1e-5,
)
model = Mamba2ForCausalLM(config).eval()
with torch.no_grad():
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            weight.normal_(0, 0.5)
        elif not name.endswith(("A_log", "dt_bias")):
            weight.normal_(0.8, 0.3)
ids = torch.randint(WORDS, (40,)).tolist()
weights = {renamed(name): w.squeeze(1) if w.dim() == 3 else w for name, w in model.state_dict().items()}
with torch.no_grad():
    logits = model.double()(torch.tensor([ids])).logits[0, :-1]
nll = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none").tolist()

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
save_file({name: w.float().contiguous() for name, w in weights.items()}, f"{folder}/model.safetensors")
options = dict(
    arch="mamba2", layers=LAYERS, d_model=WIDTH, heads=HEADS, state_size=STATE, expand=EXPAND, gla_convolution=TAPS,
    tied=False, scale_embedding=False,
)
own = dict(version=1, model=options, vocabulary_size=WORDS, tokenizer_fingerprint="")
with open(f"{folder}/config.json", "w") as out:
    json.dump({"tessera": own}, out, indent=1)
with open(f"{folder}/nll.json", "w") as out:
    json.dump({"ids": ids, "nll": nll}, out)
