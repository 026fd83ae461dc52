"""What peft makes of adapter_config.json: which modules get a term, with which rank and alpha.

peft_rules.py        prints tests/golden/peft/rules.jsonl: a line for each configuration, with peft's answer for each module:
                     the rank and the alpha of its term, or null. The configuration is text, since the order of its keys counts.
Exit 77 and a reason where peft is missing.
"""

import json
import random

from peer_modules import modules_or_skip

with modules_or_skip():
    from peft import LoraConfig
    from peft.tuners.tuners_utils import check_target_module_exists
    from peft.utils.other import get_pattern_key

LLAMA = [
    f"model.layers.{i}.{part}"
    for i in (0, 1, 11)
    for part in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj")
]
GPT2 = [f"transformer.h.{i}.{part}" for i in (0, 12) for part in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")]
MODULES = ["lm_head", "model.embed_tokens", "q_proj", "transformer.wte", *LLAMA, *GPT2]

ALL = r".*"
UNSLOTH = (
    r"(?:.*?(?:vision|image|visual|patch|language|text).*?(?:self_attn|attention|attn|mlp|feed_forward|ffn|dense).*?"
    r"(?:k_proj|v_proj|q_proj|out_proj|fc1|fc2).*?)|(?:\bmodel\.layers\.[\d]{1,}\.(?:self_attn|attention|attn|mlp|"
    r"feed_forward|ffn|dense)\.(?:(?:k_proj|v_proj|q_proj|out_proj|fc1|fc2)))"
)

# Keys of rank_pattern and alpha_pattern; each is tried alone, and random ones together.
KEYS = [
    "q_proj", "^q_proj", "q_proj$", "^q_proj$", "self_attn.q_proj", "self.attn.q_proj", r"self_attn\.q_proj", "proj", ".*proj", "._proj",
    "attn", "model.layers.1.self_attn.q_proj", "model.layers.1", r"layers\.1\..*", r"layers\.1\.", "^model.layers.1.*q_proj", "layers.1.*q_proj",
    "q_proj|k_proj", "^q_proj|k_proj", "q_proj|^k_proj", "model.*(q|k)_proj", r"\bq_proj", r"q\b_proj", r"\bproj", r"(?<=\.)q_proj",
    r"(?<!attn\.)c_proj", r"(?<!x)c_proj", "(?:mlp|attn).c_(fc|proj)", r"[kq]_proj", "[^q]_proj", r"[\w.]+q_proj", r"\w+\.q_proj",
    r"layers\.[0-9]+\.mlp\..*", r"layers\.\d{2}\..*", r"layers\.\d{,1}\..*", r"layers\.\d{1,2}\.mlp.*", r"h\.1{,2}2?\..*", "", ".", "..", "lm_head",
    "^lm_head", "LM_HEAD", r"q_proj\Z", r"\Aq_proj", "q_proj.*", ".*", "^.*$", "q_proj(?=$)", "(?P<x>q|k)_proj", r"(.)_proj\3?", r"([a-z])_proj",
    "mlp.(?!gate).*", "(?i:Q_PROJ)", "q_proj?", "q+_proj", "c_.*", "h.1.*", r"h\.1\..*", "attn.c_attn|mlp.c_fc", r"[]q]_proj", r"[.]c_fc",
    "a{,3}ttn.c_attn", "embed_tokens", "wte", "transformer.wte|lm_head", r"\.", r"layers.(0|11)\..*_proj", "d*own_proj", "[a-q]{1,4}_proj",
]
# What else of a configuration chooses modules.
CHOICES = [
    {"target_modules": UNSLOTH},
    {"target_modules": r".*\.[0-3]\.mlp\..*"}, {"target_modules": "mlp"}, {"target_modules": "q_proj"}, {"target_modules": r"^.*q_proj$"},
    {"target_modules": r"model\.layers\.(?:0|1)\.self_attn\.(q|k)_proj"}, {"target_modules": r".*\bq_proj"}, {"target_modules": r"(?i).*Q_PROJ"},
    {"target_modules": r".*(?<!k)_proj"}, {"target_modules": r".*_proj|lm_head"}, {"target_modules": r"q_proj|.*k_proj"},
    {"target_modules": ["q_proj", "c_attn"]}, {"target_modules": ["self_attn.q_proj"]}, {"target_modules": ["attn.q_proj", "roj"]},
    {"target_modules": ["model.layers.1.self_attn.q_proj", "k_proj"], "layers_to_transform": [0]}, {"target_modules": ["layers.1.self_attn.q_proj"]},
    {"target_modules": [".*q_proj", "^k_proj"]}, {"target_modules": ["lm_head", "embed_tokens", "wte"]}, {"target_modules": []},
    {"target_modules": ["q_proj", "c_fc"], "layers_to_transform": 1}, {"target_modules": ["q_proj", "c_fc"], "layers_to_transform": [1, 11]},
    {"target_modules": ["q_proj", "c_fc", "lm_head"], "layers_to_transform": [0], "layers_pattern": "layers"},
    {"target_modules": ["q_proj", "c_fc"], "layers_to_transform": [0], "layers_pattern": "h"},
    {"target_modules": ["q_proj", "c_fc"], "layers_to_transform": [0], "layers_pattern": ["h", "layers"]},
    {"target_modules": ["q_proj", "c_fc"], "layers_to_transform": [0], "layers_pattern": []},
    {"target_modules": ["q_proj", "c_fc"], "layers_to_transform": [0], "layers_pattern": [""]},
    {"target_modules": ["q_proj", "c_fc"], "layers_to_transform": [0], "layers_pattern": ""},
    {"target_modules": ["q_proj", "c_fc"], "layers_to_transform": [0, 12], "layers_pattern": ["l.yers|h"]},
    {"target_modules": ["q_proj", "c_fc"], "layers_to_transform": [0], "layers_pattern": "ayers"},
    {"target_modules": ["q_proj", "c_fc"], "layers_to_transform": []},
    {"target_modules": ALL, "exclude_modules": ["q_proj", "mlp.c_proj"]}, {"target_modules": ALL, "exclude_modules": r".*\b1\..*"},
    {"target_modules": ALL, "exclude_modules": "q_proj"}, {"target_modules": ALL, "exclude_modules": "^.*q_proj$"},
    {"target_modules": ALL, "exclude_modules": ["roj", "model.layers.1.self_attn.q_proj"]},
    {"target_modules": ALL, "modules_to_save": ["lm_head"]}, {"target_modules": ALL, "modules_to_save": ["head"]},
    {"target_modules": ALL, "modules_to_save": ["self_attn", "wte"]}, {"target_modules": ALL, "modules_to_save": ["self.attn.q_pro."]},
    {"target_modules": ALL, "modules_to_save": [r"layers\.1", "attn$"]}, {"target_modules": ALL, "modules_to_save": ["q_proj|k_proj"]},
]


def answer(config):
    made = LoraConfig(**config)
    terms = []
    for module in MODULES:
        if not check_target_module_exists(made, module):
            terms.append(None)
            continue
        rank = made.rank_pattern.get(get_pattern_key(made.rank_pattern.keys(), module), made.r)
        alpha = made.alpha_pattern.get(get_pattern_key(made.alpha_pattern.keys(), module), made.lora_alpha)
        terms.append([rank, alpha])
    return terms


def configurations():
    yield from CHOICES
    for number, key in enumerate(KEYS):
        yield {"target_modules": ALL, ["alpha_pattern", "rank_pattern"][number % 2]: {key: 100}}
    draw = random.Random(3)
    for _ in range(40):
        patterns = {
            name: {key: value for value, key in enumerate(draw.sample(KEYS, draw.randint(2, 6)), 1)}
            for name in ("rank_pattern", "alpha_pattern")
        }
        yield {"target_modules": ALL, "r": 64, "lora_alpha": 32, **patterns}


def main():
    print(json.dumps({"modules": MODULES}))
    for config in configurations():
        print(json.dumps({"config": json.dumps(config), "terms": answer(config)}))


main()
