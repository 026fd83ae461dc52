"""The models that mixers.sh compares with: transformers' on the CPU (the plain form that it has where no CUDA kernel is
there), and PyTorch's LSTM. 4 layers, d 256, 8,000 types, random weights, float32.

usage: mixers_peer.py NAME step [updates]    8 x 512 tokens (mamba, which takes minutes for these: 1 x 512), AdamW;
                                             tokens_per_s: median of the updates after the first
       mixers_peer.py NAME decode [tokens]   one sequence, greedy, with the model's cache; tokens_per_s
Prints one JSON line.
"""

import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, D, ROWS, STEPS, TYPES = 4, 256, 8, 512, 8000


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.lstm = nn.Embedding(TYPES, D), nn.LSTM(D, D, LAYERS, batch_first=True)

    def forward(self, input_ids, labels):
        logits = F.linear(self.lstm(self.tokens(input_ids))[0][:, :-1], self.tokens.weight)
        return F.cross_entropy(logits.reshape(-1, TYPES), labels[:, 1:].reshape(-1))

    def generate(self, ids, max_new_tokens, **_):
        state = None
        for _ in range(max_new_tokens):
            out, state = self.lstm(self.tokens(ids[:, -1:]), state)
            ids = torch.cat((ids, F.linear(out[:, -1:], self.tokens.weight).argmax(-1)), 1)
        return ids


def made(name):
    if name == "lstm":
        return Lstm()
    import transformers as hf

    size = {"vocab_size": TYPES, "hidden_size": D, "num_hidden_layers": LAYERS, "tie_word_embeddings": True}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 64, "intermediate_size": 4 * D}
    config = {
        "transformer": lambda: hf.GPT2Config(vocab_size=TYPES, n_embd=D, n_layer=LAYERS, n_head=4, n_positions=1024),
        "mamba": lambda: hf.MambaConfig(**size),
        "mamba2": lambda: hf.Mamba2Config(**size, num_heads=8, head_dim=64, n_groups=1),
        "rwkv4": lambda: hf.RwkvConfig(**size, context_length=1024),
        # Dense layers of gated DeltaNet. Their generate() wants a layer of attention too, so they have no decode.
        "delta": lambda: hf.Qwen3NextConfig(
            **size, **heads, layer_types=["linear_attention"] * LAYERS, mlp_only_layers=list(range(LAYERS)),
            linear_num_key_heads=4, linear_num_value_heads=4, linear_key_head_dim=64, linear_value_head_dim=64
        ),
    }[name]()
    return hf.AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def loss_of(model, ids):
    out = model(input_ids=ids, labels=ids, **({} if isinstance(model, Lstm) else {"use_cache": False}))
    return out if torch.is_tensor(out) else out.loss


def main():
    name, what = sys.argv[1:3]
    torch.manual_seed(1)
    torch.set_flush_denormal(True)
    model = made(name)
    if what == "step":
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        seconds, rows = [], 1 if name == "mamba" else ROWS
        for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 4):
            ids = torch.randint(TYPES, (rows, STEPS))
            begin = time.perf_counter()
            optimiser.zero_grad(set_to_none=True)
            loss_of(model, ids).backward()
            optimiser.step()
            seconds.append(time.perf_counter() - begin)
        speed = rows * STEPS / sorted(seconds[1:])[len(seconds[1:]) // 2]
    else:
        n = int(sys.argv[3]) if len(sys.argv) > 3 else 128
        model.eval()
        with torch.no_grad():
            options = {"do_sample": False, "min_new_tokens": n, "pad_token_id": 0, "use_cache": True}
            ids = torch.ones((1, 1), dtype=torch.long)
            model.generate(ids, max_new_tokens=4, **options | {"min_new_tokens": 4})
            begin = time.perf_counter()
            model.generate(ids, max_new_tokens=n, **options)
            speed = n / (time.perf_counter() - begin)
    print(json.dumps({"tokens_per_s": speed, "parameters": sum(p.numel() for p in model.parameters())}))


main()
