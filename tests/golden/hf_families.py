"""What transformers makes of a folder of a family that Tessera has, and such folders as transformers makes them.

hf_families.py COMMAND FOLDER [ARG...], with `exact` before it: all in double precision.
  make FOLDER ID...        writes FOLDER/NAME for each kind, a model of bytes at random in several files, and prints
                           a line for each: NAME and its mean loss on the ids, in nats
  loss FOLDER,... ID...    prints a line for each folder: the mean loss of what AutoModelForCausalLM loads there,
                           and its class
  generate FOLDER,... N ID...
                           prints a line for each: the N ids that greedy search adds
  keys FOLDER,... ID...    writes FOLDER.keys: what the last feed-forward network reads, a line a token
  golden FOLDER            writes FOLDER/NAME as in this folder's families/: small, bfloat16, with nll.json
Exit 77 and a reason where transformers is missing.
"""

import contextlib
import json
import os
import sys

from peer_modules import modules_or_skip

arguments = sys.argv[1:]
exact = arguments[:1] == ["exact"]
arguments = arguments[exact:]
with modules_or_skip():
    import torch

    from transformers import AutoConfig, AutoModelForCausalLM

SHAPE = dict(
    hidden_size=16,
    intermediate_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    initializer_range=0.3,
    vocab_size=256,
    bos_token_id=None,
    eos_token_id=None,
    pad_token_id=None,
)
LLAMA3 = dict(
    rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=12
)
# NAME: model_type and what is not as in SHAPE. The first of each family is the one of families/.
KINDS = {
    "llama": ("llama", dict(rope_scaling=LLAMA3, rope_theta=500.0)),
    "llama_tied": ("llama", dict(tie_word_embeddings=True, rms_norm_eps=1e-3, num_key_value_heads=4)),
    "llama_biases": ("llama", dict(attention_bias=True, mlp_bias=True, head_dim=6)),
    "llama_linear": ("llama", dict(rope_scaling=dict(rope_type="linear", factor=4.0))),
    "llama_yarn": (
        "llama",
        dict(rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=12), head_dim=12),
    ),
    "mistral": ("mistral", dict(sliding_window=5)),
    "mistral_wide": ("mistral", dict(sliding_window=None, num_key_value_heads=1)),
    "qwen2": ("qwen2", dict(use_sliding_window=True, sliding_window=5, max_window_layers=1)),
    "qwen2_tied": ("qwen2", dict(tie_word_embeddings=True)),
    "qwen3": ("qwen3", dict(head_dim=8)),
    "olmo2": ("olmo2", dict(rope_theta=500.0)),
    "gpt_neox": ("gpt_neox", dict(rotary_pct=0.5)),
    "gpt_neox_one_by_one": ("gpt_neox", dict(use_parallel_residual=False, attention_bias=False, hidden_act="relu", num_attention_heads=2)),
    "opt": ("opt", dict(ffn_dim=24)),
    "phi3": ("phi3", dict(sliding_window=5, original_max_position_embeddings=64)),
    "phi3_longrope": (
        "phi3",
        dict(
            original_max_position_embeddings=64,
            max_position_embeddings=128,
            rope_parameters=dict(
                rope_type="longrope", rope_theta=500.0, short_factor=[1.0, 1.5, 2.0, 3.0], long_factor=[2.0, 4.0, 8.0, 9.0]
            ),
        ),
    ),
    "phi": ("phi", dict(rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=0.5))),
    "ministral3": (
        "ministral3",
        dict(
            head_dim=8,
            max_position_embeddings=128,
            rope_parameters=dict(
                rope_type="yarn", rope_theta=500.0, factor=4.0, original_max_position_embeddings=64, beta_fast=32.0,
                beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1,
            ),
        ),
    ),
    "gpt_neo": ("gpt_neo", dict(attention_types=[[["global", "local"], 1]], window_size=5, intermediate_size=24)),
    "gemma": ("gemma", dict(head_dim=6)),
    "gemma2": (
        "gemma2",
        dict(sliding_window=5, query_pre_attn_scalar=9, attn_logit_softcapping=2.0, final_logit_softcapping=3.0, head_dim=4),
    ),
    "gemma3_text": (
        "gemma3_text",
        dict(
            sliding_window=5,
            layer_types=["sliding_attention", "full_attention"],
            query_pre_attn_scalar=16,
            head_dim=4,
            rope_parameters=dict(
                sliding_attention=dict(rope_type="default", rope_theta=50.0),
                full_attention=dict(rope_type="linear", factor=4.0, rope_theta=500.0),
            ),
        ),
    ),
    "mixtral": ("mixtral", dict(num_local_experts=5, num_experts_per_tok=2)),
    "mixtral_stacked": ("mixtral", dict(num_local_experts=4, num_experts_per_tok=1, sliding_window=5)),
    "qwen3_moe": (
        "qwen3_moe",
        dict(num_experts=6, num_experts_per_tok=3, moe_intermediate_size=10, head_dim=8, norm_topk_prob=True),
    ),
    "qwen3_moe_stacked": ("qwen3_moe", dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=20)),
    "olmoe": ("olmoe", dict(num_experts=5, num_experts_per_tok=2)),
    "mamba": ("mamba", dict(state_size=3, expand=3)),
    "mamba2": ("mamba2", dict(num_heads=4, head_dim=8, n_groups=1, state_size=6)),
    "qwen3_5_text": (
        "qwen3_5_text",
        dict(
            head_dim=8,
            linear_key_head_dim=4,
            linear_value_head_dim=6,
            linear_num_key_heads=2,
            linear_num_value_heads=6,
            layer_types=["linear_attention", "full_attention"],
            rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=0.5),
        ),
    ),
    "qwen3_5_every_third": (
        "qwen3_5_text",
        dict(
            num_hidden_layers=4,
            full_attention_interval=3,
            head_dim=16,
            linear_conv_kernel_dim=3,
            linear_num_key_heads=3,
            linear_num_value_heads=3,
            linear_key_head_dim=5,
            linear_value_head_dim=4,
            tie_word_embeddings=True,
        ),
    ),
}
# Saved as the modules of transformers 5 have them: the experts of a layer are one tensor.
STACKED = ["mixtral_stacked", "qwen3_moe_stacked"]


SMALL = dict(hidden_size=8, intermediate_size=10, vocab_size=64)
# Their heads are as wide as hidden_size says: two wide enough to turn.
OLD = ["gpt_neox", "opt", "phi3", "phi3_longrope", "phi", "gpt_neo", "olmoe"]


def ids_of(words):
    return torch.tensor([[int(word) for word in words]])


@contextlib.contextmanager
def in_double():
    """transformers takes norms, angles and softmaxes in what it finds under these names."""
    narrow = torch.float32, torch.float, torch.Tensor.float
    if exact:
        torch.float32 = torch.float = torch.float64
        torch.Tensor.float = torch.Tensor.double
    yield
    torch.float32, torch.float, torch.Tensor.float = narrow


def load(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")  # the others want other widths and no double precision
    if exact:
        model.double()
        for module in model.modules():
            if any(name.endswith("inv_freq") for name in vars(module).get("_buffers", {})):
                with in_double():
                    module.__init__(module.config)
            if hasattr(module, "scalar_embed_scale"):
                module.embed_scale.fill_(module.scalar_embed_scale)
    return model


def nll(model, ids):
    """Of each token after the first."""
    with torch.no_grad(), in_double():
        logits = model(input_ids=ids).logits[0, :-1]
    return -logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]


def random_model(name, **changes):
    """With every parameter away from where it starts: norms are not 1, biases not 0."""
    family, options = KINDS[name]
    torch.manual_seed(7)
    if name in OLD:
        changes = dict(num_attention_heads=2, num_key_value_heads=1 if name.startswith("phi3") else 2) | changes
    values = SHAPE | options | changes
    if name == "mamba":
        values["intermediate_size"] = values["expand"] * values["hidden_size"]
    config = AutoConfig.for_model(family, **values)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def make(folder, ids):
    for name in KINDS:
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            random_model(name).save_pretrained(path, max_shard_size="6KB", save_original_format=name not in STACKED)
        print(name, repr(nll(load(path), ids).mean().item()))


def golden(folder):
    for name in dict((family, name) for name, (family, _) in reversed(KINDS.items())).values():
        path = os.path.join(folder, name)
        model = random_model(name, **SMALL | ({} if name in OLD else {"head_dim": 4}))
        model.to(torch.bfloat16).save_pretrained(path, max_shard_size="2KB")
        for extra in ("generation_config.json",):
            os.remove(os.path.join(path, extra))
        ids = [(i * 7 + 3) % 64 for i in range(30)]
        expected = {"ids": ids, "nll": nll(load(path), ids_of(ids)).tolist()}
        with open(os.path.join(path, "nll.json"), "w") as file:
            json.dump(expected, file)
            file.write("\n")


def generate(folder, count, ids):
    model = load(folder)
    with torch.no_grad():
        for _ in range(int(count)):
            ids = torch.cat([ids, model(input_ids=ids).logits[:, -1:].argmax(-1)], 1)
    print(*ids[0, -int(count) :].tolist())


def loss(folder, ids):
    model = load(folder)
    print(repr(nll(model, ids).mean().item()), type(model).__name__)


def keys(folder, ids):
    model, seen = load(folder), []
    last = model.get_decoder().layers[-1].mlp
    last.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0][0]))
    nll(model, ids)
    with open(folder + ".keys", "w") as file:
        for row in seen[0].tolist():
            print(*row, file=file)


def main(command, folders, *rest):
    for folder in folders.split(","):
        if command == "make":
            make(folder, ids_of(rest))
        elif command == "loss":
            loss(folder, ids_of(rest))
        elif command == "generate":
            generate(folder, rest[0], ids_of(rest[1:]))
        elif command == "keys":
            keys(folder, ids_of(rest))
        elif command == "golden":
            golden(folder)


try:
    main(*arguments)
except Exception as error:  # stderr is full of progress bars
    print(f"{type(error).__name__}: {error}")
    sys.exit(1)
