"""Models drawn at random: what Tessera computes of them, and what transformers does.

family_draws.py write FOLDER [COUNT [SEED]]
                         trains COUNT [200] models of drawn options for a step, gives each that is of a family of
                         transformers random weights, and compares the log-probabilities of a text's tokens
family_draws.py read FOLDER [COUNT [SEED]]
                         writes COUNT [200] folders of drawn keys of config.json, known to the family or not, and
                         compares likewise what transformers and eval-ppl read
family_draws.py golden FILE
                         writes what transformers computes of cases(), with the weights of weights_of(), for
                         tests/unit/model/family_classes_test.cpp
The first two print a table, a line for each fault, and exit 1 if there is one. train, tokenize and eval-ppl are
those in PATH. Exit 77 and a reason where transformers is missing.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings

from peer_modules import modules_or_skip

with modules_or_skip():
    import numpy
    import torch
    from safetensors.numpy import load_file, save_file

    import transformers
    from transformers import AutoConfig, AutoModelForCausalLM

transformers.utils.logging.disable_progress_bar()
warnings.filterwarnings("ignore")
BOUND = 1e-4
# In single precision, this class is up to 2e-4 from itself in double precision, with which eval-ppl agrees.
BOUND_OF = {"qwen3_5_text": 1e-3}
TEXT = "The cat sat on a mat and that was that."
IDS = list(TEXT.encode())

# Options of train for the shape of each family.
ROPE = "--positions rope --norm-kind rms --feed-forward gated --activation silu --no-bias --no-scale-embedding"
GEMMA = "--positions rope --norm-kind rms-one --feed-forward gated --activation gelu --no-bias"
MOE = ROPE + " --experts 4 --d-ff 24"
BASES = {
    "gpt2": "--no-scale-embedding",
    "llama": ROPE,
    "mistral": ROPE + " --attention-window 5",
    "qwen2": ROPE.replace("--no-bias", "--bias-of qkv"),
    "qwen3": ROPE + " --qk-norm head --d-head 8",
    "olmo2": ROPE + " --norm sublayer --qk-norm whole",
    "phi3": ROPE + " --d-head 8 --rope-partial-factor 0.5",
    "olmo3": ROPE + " --norm sublayer --qk-norm whole --attention-window 5 --attention-window none",
    "smollm3": ROPE + " --rope-skip 2 --tied",
    "granite": ROPE + " --attention-scale 0.3",
    "ministral3": ROPE
    + " --rope-scaling yarn --rope-factor 4 --rope-original-positions 64 --rope-query-growth 0.1",
    "gpt_neox": "--positions rope --norm parallel --activation gelu-exact --no-scale-embedding --d-model 32"
    " --rope-partial-factor 0.5",
    "opt": "--no-scale-embedding --activation relu --bias-of norm",
    "gpt_neo": "--no-scale-embedding --bias-of output --bias-of feed-forward --bias-of norm --attention-scale 1"
    " --attention-window none --attention-window 5",
    "gemma": GEMMA + " --d-head 6",
    "gemma2": GEMMA + " --norm sandwich --attention-window 5 --attention-window none --attention-scale 0.25"
    " --attention-softcap 2 --logit-softcap 3",
    "gemma3_text": GEMMA + " --norm sandwich --qk-norm head --attention-window 5 --attention-window none"
    " --rope-theta 500 --rope-local-theta 50",
    "phi": "--positions rope --norm parallel-one --head-bias --no-tied --no-scale-embedding --rope-partial-factor 0.5"
    " --d-model 32",
    "mixtral": MOE,
    "qwen3_moe": MOE + " --qk-norm head",
    "olmoe": MOE + " --qk-norm whole --no-experts-normalised",
    "mamba": "--arch mamba --channel-state 8 --no-scale-embedding",
    "mamba2": "--arch mamba2 --state-size 8 --no-scale-embedding",
    "qwen3_5_text": "--arch hybrid --mixer delta,gated-attention --norm-kind rms-one --feed-forward gated --activation silu"
    " --no-bias --no-scale-embedding --rope-partial-factor 0.5 --delta-key-heads 2 --delta-value-heads 4 --delta-d-key 3"
    " --delta-d-value 5",
}
# Options that are drawn in addition; those of a line replace one another.
CHANGES = [
    ["--rope-partial-factor 0.5", "--rope-partial-factor 1", "--rope-partial-factor 0.5 --d-head 12"],
    ["--rope-theta 500", "--rope-theta 500000", "--rope-theta 1000000"],
    ["--rope-local-theta 50", "--rope-local-theta 500", "--rope-local-theta 10000"],
    ["--rope-scaling linear --rope-factor 4", "--rope-scaling dynamic --rope-factor 2 --rope-original-positions 64",
     "--rope-scaling llama3 --rope-factor 4 --rope-original-positions 12", "--rope-scaling none",
     "--rope-scaling yarn --rope-factor 4 --rope-original-positions 12",
     "--rope-scaling yarn --rope-factor 2 --rope-original-positions 4 --rope-attention-factor 1.5",
     "--rope-scaling longrope --d-head 4 --rope-partial-factor 1 --rope-original-positions 64 --rope-short-factors 1"
     " --rope-short-factors 2 --rope-long-factors 3 --rope-long-factors 4"],
    ["--rope-skip 2", "--rope-skip 3", "--rope-skip none"],
    ["--attention-window 5", "--attention-window none", "--attention-window 5 --attention-window none",
     "--attention-window none --attention-window 5", "--attention-window 5 --attention-window 3",
     "--attention-window 5 --attention-window 5 --attention-window 5 --attention-window none"],
    ["--attention-scale 0.25", "--attention-scale 0.3", "--attention-scale auto", "--attention-scale 1"],
    ["--attention-softcap 2", "--attention-softcap none"],
    ["--logit-softcap 3", "--logit-softcap none"],
    ["--kv-heads 1", "--kv-heads 2"],
    ["--d-head 6", "--d-head 8", "--d-head auto"],
    ["--d-model 18 --d-head 4", "--d-model 24"],
    ["--d-ff 24", "--d-ff 40"],
    ["--qk-norm head", "--qk-norm whole", "--qk-norm none"],
    ["--norm pre", "--norm sublayer", "--norm sandwich", "--norm parallel"],
    ["--norm-kind rms", "--norm-kind rms-one", "--norm-kind layer"],
    ["--activation gelu", "--activation gelu-exact", "--activation relu", "--activation silu"],
    ["--norm-epsilon 0.001"],
    ["--bias", "--bias-of qkv", "--bias-of qkv --bias-of output", "--bias-of feed-forward", "--no-bias",
     "--bias-of qkv --bias-of output --bias-of feed-forward"],
    ["--tied", "--no-tied"],
    ["--scale-embedding", "--no-scale-embedding"],
    ["--head-bias", "--no-head-bias"],
    ["--experts-per-token 1", "--experts-per-token 3"],
    ["--experts-normalised", "--no-experts-normalised"],
    ["--no-final-norm"],
    ["--context 48", "--context 256"],
    ["--layers 4", "--layers 3"],
]


def option_map(words):
    """The value or values of each option; the later ones replace the earlier ones of the same option."""
    options, last = {}, None
    for text in words:
        own = {}
        for word in text.split():
            if word.startswith("--"):
                last = word
                own.setdefault(last, [])
            else:
                own[last].append(word)
        for name in own:
            bare = name.replace("--no-", "--")
            for other in [bare, bare.replace("--", "--no-", 1)]:
                options.pop(other, None)
            if name in ("--bias", "--no-bias", "--bias-of"):
                for other in ("--bias", "--no-bias", "--bias-of"):
                    options.pop(other, None)
        options.update(own)
    return options


def flags_of(words):
    flags = []
    for name, values in option_map(words).items():
        flags += [name] if not values else [part for value in values for part in (name, value)]
    return flags


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})


def shard_of(folder):
    os.makedirs(folder, exist_ok=True)
    shard = os.path.join(folder, "text.shard.zst")
    subprocess.run(["tokenize", "-q", "-t", "bytes", "-o", shard], input=TEXT.encode(), check=True)
    return shard


def own_nll(path, shard):
    """Of each token after the first by eval-ppl, or the line with which it refuses."""
    table = path + ".tsv"
    done = run("eval-ppl", "-m", path, "--window", "48", "--memory", "none", "--per-token", table, "--force", shard)
    if done.returncode != 0:
        return f"exit {done.returncode}: " + done.stderr.strip().split("\n")[-1], done.stderr
    with open(table) as file:
        lines = (line for line in file if not line.startswith("#"))
        names = next(lines).split("\t")
        return [float(line.split("\t")[names.index("head")]) for line in lines], done.stderr


def peer_nll(path, ids=IDS):
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float64, attn_implementation="eager").eval()
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0, :-1].double()
    return (-logits.log_softmax(-1).gather(1, torch.tensor(ids)[1:, None])[:, 0]).tolist()


def randomise(path, seed):
    """Gives the weights numbers of which none is where it starts, such as a norm's 1 or a bias's 0."""
    file = os.path.join(path, "model.safetensors")
    draws = numpy.random.default_rng(seed)
    tensors = {}
    for name, tensor in load_file(file).items():
        noise = draws.standard_normal(tensor.shape)
        start = tensor if len(tensor.shape) == 1 else 0
        tensors[name] = (start + 0.3 * noise).astype(numpy.float32)
    save_file(tensors, file, {"format": "pt"})


class Table:
    def __init__(self, columns):
        self.columns, self.rows, self.faults = columns, {}, []

    def add(self, family, column, gap=None):
        row = self.rows.setdefault(family, dict.fromkeys(self.columns, 0) | {"worst": 0.0})
        row[column] += 1
        if gap is not None:
            row["worst"] = max(row["worst"], gap)

    def fault(self, text):
        self.faults.append(text)
        print("fault:", text, flush=True)

    def show(self):
        print(*["family", *self.columns, "worst difference"], sep=" | ")
        for family in sorted(self.rows):
            row = self.rows[family]
            print(family, *[row[column] for column in self.columns], f"{row['worst']:.1e}", sep=" | ")
        whole = {column: sum(row[column] for row in self.rows.values()) for column in self.columns}
        print("all", *whole.values(), f"{max(row['worst'] for row in self.rows.values()):.1e}", sep=" | ")
        print("faults:", len(self.faults))
        return 1 if self.faults else 0


def compare(table, family, column, name, own, peer):
    gap = max(abs(a - b) for a, b in zip(own, peer, strict=True))
    table.add(family, column, gap)
    if not gap < BOUND_OF.get(family, BOUND):
        table.fault(f"{name}: {gap:.2g} nats apart")


def write(folder, count=200, seed=1):
    shard, draws, table = shard_of(folder), random.Random(int(seed)), Table(["drawn", "written", "none"])
    done = 0
    while done < int(count):
        family = list(BASES)[done % len(BASES)]
        changes = [draws.choice(line) for line in draws.sample(CHANGES, draws.choice([0, 1, 1, 2, 2, 3]))]
        flags = flags_of(["--layers 2 --d-model 16 --heads 4 --context 64 --no-tied", BASES[family], *changes])
        path = os.path.join(folder, f"draw{done}")
        shutil.rmtree(path, ignore_errors=True)
        flags += ["--segment", "8", "--batch", "1", "--steps", "1", "--init", "gpt2"]
        trained = run("train", *flags, "-o", path, shard)
        if trained.returncode in (64, 78):
            continue  # a combination that no model has
        done += 1
        table.add(family, "drawn")
        name = f"{path} ({family}: {' '.join(flags)})"
        if trained.returncode != 0:
            table.fault(f"{name}: train exits {trained.returncode}: {trained.stderr}")
            continue
        with open(os.path.join(path, "config.json")) as file:
            config = json.load(file)
        says = "no family of transformers" in trained.stderr
        if says == ("model_type" in config):
            table.fault(f"{name}: model_type {config.get('model_type')}, and train says {trained.stderr}")
        if "model_type" not in config:
            table.add(family, "none")
            continue
        randomise(path, done)
        own, _ = own_nll(path, shard)
        if isinstance(own, str):
            table.fault(f"{name}: {own}")
            continue
        try:
            peer = peer_nll(path)
        except Exception as error:  # noqa: BLE001  # whatever it raises, the user cannot load the folder
            table.fault(f"{name}: {config['model_type']}: {type(error).__name__}: {error}")
            continue
        compare(table, config["model_type"], "written", name, own, peer)
        shutil.rmtree(path)
    return table.show()


ABSENT = "absent"
# Keys of config.json that a class may know: none of them is the default. The second element: of which families; empty:
# of any, whether they know them or not.
TRAINED = dict(original_max_position_embeddings=12)
LLAMA3 = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0) | TRAINED
YARN = dict(rope_type="yarn", factor=4.0) | TRAINED
KINDS = ("gemma3_text", "olmo3")
WINDOWED = ("mistral", "mixtral", "ministral3", "phi3", "gemma2", "gemma3_text", "olmo3")
KEYS = [
    (dict(rms_norm_eps=1e-3, layer_norm_eps=1e-3, layer_norm_epsilon=1e-3), ()),
    (dict(tie_word_embeddings=True), ()),
    (dict(tie_word_embeddings=False), ()),
    (dict(attention_bias=True), ()),
    (dict(mlp_bias=True), ()),
    (dict(num_key_value_heads=1), ()),
    (dict(num_key_value_heads=None), ("llama", "mistral", "qwen2", "qwen3", "olmo2", "granite", "mixtral", "phi")),
    (dict(head_dim=8), ()),
    (dict(hidden_act="relu", hidden_activation="relu", activation_function="relu"), ()),
    (dict(hidden_act="gelu"), ("gemma", "llama", "gemma2")),
    (dict(partial_rotary_factor=0.5), ()),
    (dict(rotary_pct=0.5), ()),
    (dict(rope_theta=500.0), ()),
    (dict(rotary_emb_base=500.0), ()),
    (dict(rope_local_base_freq=50.0), ()),
    (dict(rope_parameters=dict(rope_type="default", rope_theta=500.0)), ()),
    (dict(rope_parameters=dict(rope_type="default")), ()),
    (dict(rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=0.5)), ()),
    (dict(rope_parameters=YARN), ()),
    (dict(rope_scaling=dict(type="linear", factor=4.0)), ()),
    (dict(rope_scaling=dict(rope_type="linear", factor=4.0)), ()),
    (dict(rope_scaling=dict(rope_type="linear", factor=2.0),
          rope_parameters=dict(rope_type="linear", factor=8.0)), ()),
    (dict(rope_scaling=dict(rope_type="dynamic", factor=4.0)), ()),
    (dict(rope_scaling=LLAMA3), ()),
    (dict(rope_scaling=LLAMA3, original_max_position_embeddings=20), ()),
    (dict(rope_scaling=YARN, partial_rotary_factor=0.5), ()),
    (dict(rope_scaling=dict(rope_type="yarn", factor=4.0, attention_factor=1.3, beta_fast=16.0, beta_slow=2.0)), ()),
    (dict(rope_scaling=dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=4)), ()),
    (dict(rope_scaling=dict(rope_type="yarn", factor=4.0, mscale=0.7, mscale_all_dim=1.1)), ()),
    (dict(rope_scaling=TRAINED | dict(type="su", short_factor=[1.0, 2.0], long_factor=[2.0, 4.0]),
          original_max_position_embeddings=64), ("phi3",)),
    (dict(rope_scaling=dict(rope_type="longrope", short_factor=[1.0, 2.0], long_factor=[2.0, 4.0], factor=4.0,
                            original_max_position_embeddings=64)), ()),
    (dict(rope_parameters=dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=300.0),
                               sliding_attention=dict(rope_type="default", rope_theta=40.0))), KINDS),
    (dict(rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=300.0))), KINDS),
    (dict(rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=30.0))), KINDS),
    (dict(sliding_window=5), ()),
    (dict(sliding_window=None), ()),
    (dict(sliding_window=5, use_sliding_window=True), ()),
    (dict(sliding_window=5, use_sliding_window=True, max_window_layers=1), ("qwen2", "qwen3")),
    (dict(sliding_window=5, layer_types=["full_attention", "sliding_attention"] * 2), ()),
    (dict(sliding_window=5, sliding_window_pattern=2), WINDOWED),
    (dict(sliding_window=5, use_sliding_window=True, layer_types=["sliding_attention", "full_attention"] * 2), ()),
    (dict(no_rope_layers=[1, 0, 1, 0]), ()),
    (dict(no_rope_layer_interval=2), ()),
    (dict(no_rope_layers=[0, 1, 1, 1]), ("smollm3",)),
    (dict(attn_logit_softcapping=2.0), ()),
    (dict(attn_logit_softcapping=None), ()),
    (dict(final_logit_softcapping=3.0), ()),
    (dict(final_logit_softcapping=None), ()),
    (dict(query_pre_attn_scalar=9), ()),
    (dict(attention_multiplier=0.4), ()),
    (dict(embedding_multiplier=3.0), ()),
    (dict(residual_multiplier=0.4), ()),
    (dict(logits_scaling=2.0), ()),
    (dict(qk_layernorm=True), ()),
    (dict(clip_qkv=0.5), ()),
    (dict(norm_topk_prob=True), ()),
    (dict(norm_topk_prob=False), ()),
    (dict(num_experts_per_tok=1), ()),
    (dict(num_experts=3), ("mixtral", "qwen3_moe")),
    (dict(num_local_experts=3), ("mixtral", "olmoe")),
    (dict(num_attention_heads=2), ()),
    (dict(num_hidden_layers=2), ("gpt2", "llama", "phi")),
    (dict(hidden_size=32), ("gpt2", "opt", "mistral")),
    (dict(use_parallel_residual=False), ()),
    (dict(enable_bias=False), ()),
    (dict(do_layer_norm_before=False), ("opt",)),
    (dict(scale_attn_by_inverse_layer_idx=True), ("gpt2",)),
    (dict(scale_attn_weights=False), ("gpt2",)),
    (dict(attention_types=[[["local"], 4]], window_size=5), ("gpt_neo",)),
    (dict(is_causal=False), ()),
    (dict(use_bidirectional_attention=True), ()),
    (dict(pad_token_id=7), ()),
    (dict(llama_4_scaling_beta=0.3), ()),
    (dict(head_dim=ABSENT), ()),
    (dict(num_key_value_heads=ABSENT), ()),
    (dict(max_position_embeddings=ABSENT, sliding_window=ABSENT), tuple(set(BASES) - {"gpt2", "gpt_neo", "opt"})),
]
SHAPE = dict(vocab_size=256, bos_token_id=None, eos_token_id=None, pad_token_id=None)
WIDE = dict(
    hidden_size=16, intermediate_size=24, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=64, head_dim=4,
)
DELTA = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=3, linear_value_head_dim=5)
# What a small model of the family needs; of a class that has no such key, not the key.
SMALL = {
    "gpt2": dict(n_embd=16, n_head=4, n_layer=4, n_inner=24, n_positions=64),
    "gpt_neo": dict(hidden_size=16, intermediate_size=24, num_layers=4, num_heads=4, max_position_embeddings=64,
                    attention_types=[[["global", "local"], 2]], window_size=7),
    "opt": dict(hidden_size=16, ffn_dim=24, num_hidden_layers=4, num_attention_heads=4, max_position_embeddings=64),
    "gpt_neox": {key: value for key, value in WIDE.items() if key not in ("num_key_value_heads", "head_dim")}
    | dict(hidden_size=32),
    "phi": {key: value for key, value in WIDE.items() if key != "head_dim"} | dict(hidden_size=32),
    "mixtral": WIDE | dict(num_local_experts=4),
    "qwen3_moe": WIDE | dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12),
    "olmoe": WIDE | dict(num_experts=4, num_experts_per_tok=2),
    "mamba": dict(hidden_size=16, num_hidden_layers=2, state_size=8),
    "mamba2": dict(hidden_size=16, num_hidden_layers=2, num_heads=4, head_dim=8, n_groups=1, state_size=8),
    "qwen3_5_text": WIDE | DELTA | dict(head_dim=8),
    "ministral3": WIDE
    | dict(rope_parameters=YARN | dict(original_max_position_embeddings=64, llama_4_scaling_beta=0.1)),
}


def small(family):
    return dict(model_type=family) | SHAPE | SMALL.get(family, WIDE)


def build(path, config):
    """Writes config.json as it is, and random weights as the class that reads it has them."""
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    own = os.path.join(path, "config.json")
    with open(own, "w") as file:
        json.dump(config, file)
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(path))
    model.save_pretrained(path, save_original_format=True)
    shutil.copy(own, path + ".saved.json")
    with open(own, "w") as file:
        json.dump(config, file)


def read(folder, count=200, seed=1):
    shard, draws = shard_of(folder), random.Random(int(seed))
    table = Table(["drawn", "agree", "refused", "fail there", "noted"])
    for number in range(int(count)):
        family = list(BASES)[number % len(BASES)]
        some = [keys for keys, of in KEYS if not of or family in of]
        config = small(family)
        for keys in draws.sample(some, draws.choice([1, 1, 2, 3])):
            config |= keys
        config = {key: value for key, value in config.items() if value != ABSENT}
        path = os.path.join(folder, f"read{number}")
        usual = small(family)
        drawn = {key: config.get(key, ABSENT) for key in config | usual}
        drawn = {key: value for key, value in drawn.items() if value != usual.get(key, ABSENT)}
        name = f"{path} ({family}: {json.dumps(drawn)})"
        table.add(family, "drawn")
        try:
            build(path, config)
            randomise(path, number)
            peer = peer_nll(path)
        except Exception as error:  # noqa: BLE001  # whatever it raises, there are no numbers to follow
            table.add(family, "fail there")
            if not os.path.exists(os.path.join(path, "model.safetensors")):
                continue
            own, _ = own_nll(path, shard)
            if not isinstance(own, str):
                print(f"note: {name}: read here, not there: {type(error).__name__}: {error}")
            continue
        for saved in (False, True):  # as drawn, and as transformers saves it
            if saved:
                shutil.copy(path + ".saved.json", os.path.join(path, "config.json"))
            own, said = own_nll(path, shard)
            if "ignores" in said:
                table.add(family, "noted")
            if isinstance(own, str):
                table.add(family, "refused")
                if not own.startswith("exit 78") or '"' not in own:
                    table.fault(f"{name}: {own}")
                elif "--refused" in sys.argv:
                    print(f"refused: {name}: {own}")
            else:
                compare(table, family, "agree", name, own, peer)
        shutil.rmtree(path)
    return table.show()


# Every key that some class knows, none at its default. Each family gets all of them: its class ignores some.
EVERY = dict(
    num_key_value_heads=2, head_dim=6, max_position_embeddings=64, rms_norm_eps=1e-3, layer_norm_eps=1e-3,
    layer_norm_epsilon=1e-3, hidden_act="relu", hidden_activation="relu", activation_function="silu",
    attention_bias=True, mlp_bias=True, enable_bias=False, use_parallel_residual=False, partial_rotary_factor=0.5,
    rotary_pct=0.75, rotary_emb_base=300.0, rope_theta=500.0, rope_local_base_freq=50.0, sliding_window=5,
    use_sliding_window=True, max_window_layers=1,
    layer_types=["full_attention", "sliding_attention", "sliding_attention"],
    no_rope_layers=[1, 0, 1], no_rope_layer_interval=2, attn_logit_softcapping=2.0, final_logit_softcapping=3.0,
    query_pre_attn_scalar=9, attention_multiplier=0.4, embedding_multiplier=3.0, residual_multiplier=0.4,
    logits_scaling=2.0, norm_topk_prob=True, num_experts_per_tok=3, pad_token_id=7, attention_dropout=0.5,
)
# The keys without which eval-ppl reads no family.
NEEDED = dict(vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=4)
NEEDED_OF = {
    "gpt2": dict(vocab_size=32, n_embd=16, n_head=4, n_layer=3, n_positions=64),
    "gpt_neo": dict(vocab_size=32, hidden_size=16, num_layers=3, num_heads=4, max_position_embeddings=64,
                    attention_types=[[["local"], 1], [["global"], 2]]),
    "opt": dict(vocab_size=32, hidden_size=16, ffn_dim=24, num_hidden_layers=3, num_attention_heads=4,
                max_position_embeddings=64, pad_token_id=None),
    "mistral": dict(num_attention_heads=8),
    "mixtral": dict(num_attention_heads=8),
    "gemma": dict(num_attention_heads=16),
    "qwen2": dict(num_attention_heads=32, hidden_size=64),
    "qwen3": dict(num_attention_heads=32),
    "gpt_neox": dict(hidden_size=32),
    "phi": dict(hidden_size=32),
    "phi3": dict(pad_token_id=None),
    "smollm3": dict(num_hidden_layers=4, pad_token_id=None),
    "olmo3": dict(num_hidden_layers=4),
    "gemma3_text": dict(num_hidden_layers=6),
    "ministral3": dict(
        num_attention_heads=8,
        rope_parameters=YARN | dict(llama_4_scaling_beta=0.1, original_max_position_embeddings=64),
        pad_token_id=None,
    ),
    "qwen3_moe": dict(num_experts=8, moe_intermediate_size=12),
    "olmoe": dict(num_experts=8),
    "mamba": dict(vocab_size=32, hidden_size=16, num_hidden_layers=2),
    "mamba2": dict(vocab_size=32, hidden_size=16, num_hidden_layers=2, num_heads=4, head_dim=8, n_groups=1),
    "qwen3_5_text": DELTA | dict(num_hidden_layers=4),
}
# What each family's case "every" has besides.
EVERY_OF = {
    "gpt2": dict(n_inner=24),
    "gpt_neo": dict(window_size=4, intermediate_size=24),
    "mamba": dict(hidden_act="silu", state_size=6, conv_kernel=3, layer_types=ABSENT),
    "mamba2": dict(hidden_act="silu", head_dim=8, state_size=6, conv_kernel=3, layer_types=ABSENT),
    "gpt_neox": dict(head_dim=8),
    "qwen3_5_text": dict(head_dim=8, attention_bias=False, hidden_act="silu", linear_conv_kernel_dim=3,
                         layer_types=["full_attention", "linear_attention", "linear_attention"]),
    "olmoe": dict(head_dim=4),
    "phi": dict(head_dim=12),
    "phi3": dict(head_dim=8),
    "mixtral": dict(num_local_experts=5),
    "qwen3_moe": dict(use_sliding_window=False, layer_types=["full_attention"] * 3),
    "ministral3": dict(
        partial_rotary_factor=1.0,
        rope_parameters=YARN | dict(rope_theta=500.0, original_max_position_embeddings=64, llama_4_scaling_beta=0.3),
    ),
}
SCALED = dict(
    max_position_embeddings=64, rope_theta=500.0, rope_scaling=YARN | dict(attention_factor=1.2, beta_fast=16.0)
)
LONG = TRAINED | dict(type="su", short_factor=[1.5, 2.0], long_factor=[4.0, 8.0], attention_factor=1.2)


def needed(family):
    own = NEEDED_OF.get(family, {})
    return dict(model_type=family) | (own if "vocab_size" in own else NEEDED | own)


def cases():
    for family in BASES:
        yield family, "bare", needed(family)
        tied = family not in ("gpt2", "gpt_neo", "opt", "gemma", "gemma2", "gemma3_text", "smollm3")
        every = needed(family) | dict(num_hidden_layers=3, num_attention_heads=4) | EVERY
        every |= dict(tie_word_embeddings=tied) | EVERY_OF.get(family, {})
        yield family, "every", {key: value for key, value in every.items() if value != ABSENT}
        if family not in ("gpt2", "gpt_neo", "opt", "ministral3", "mamba", "mamba2", "qwen3_5_text"):
            own = dict(rope_scaling=LONG, original_max_position_embeddings=48) if family == "phi3" else {}
            own |= dict(head_dim=2) if family == "mixtral" else {}
            yield family, "scaled", needed(family) | SCALED | own


def mixed(name, count):
    """Numbers from 0 to below 1: those of the test in C++."""
    value = 2166136261
    for byte in name.encode():
        value = (value ^ byte) * 16777619 % 2**32
    with numpy.errstate(over="ignore"):
        x = numpy.arange(count, dtype=numpy.uint32) * numpy.uint32(0x9E3779B9) ^ numpy.uint32(value)
        x = (x ^ (x >> 16)) * numpy.uint32(0x85EBCA6B)
        x = (x ^ (x >> 13)) * numpy.uint32(0xC2B2AE35)
        x = x ^ (x >> 16)
    return x / 2.0**32


def weights_of(name, shape):
    """Of matrices from -0.6 to 0.6, of a vector from 0.6 to 1.4 if it is a weight, else from -0.4 to 0.4."""
    numbers = mixed(name, int(numpy.prod(shape))).reshape(shape) - 0.5
    if len(shape) > 1:
        return (1.2 * numbers).astype(numpy.float32)
    return (0.8 * numbers + (1 if name.endswith("weight") else 0)).astype(numpy.float32)


def golden(file):
    folder = tempfile.mkdtemp()
    ids = [(i * 7 + 3) % 32 for i in range(16)]
    lines = []
    for family, name, config in cases():
        path = os.path.join(folder, "golden_" + family)
        build(path, config)
        weights = os.path.join(path, "model.safetensors")
        save_file({tensor: weights_of(tensor, value.shape) for tensor, value in load_file(weights).items()}, weights,
                  {"format": "pt"})
        nll = [round(number, 6) for number in peer_nll(path, ids)]
        lines.append(json.dumps({"family": family, "case": name, "config": config, "nll": nll}))
        shutil.rmtree(path)
    shutil.rmtree(folder)
    with open(file, "w") as out:
        out.write(json.dumps({"transformers": transformers.__version__, "ids": ids})[:-1] + ', "cases": [\n')
        out.write(",\n".join(lines) + "\n]}\n")
    return 0


def main(command, *rest):
    return {"write": write, "read": read, "golden": golden, "none": lambda _: 0}[command](*rest)


if __name__ == "__main__":
    sys.exit(main(*[word for word in sys.argv[1:] if not word.startswith("--")]))
