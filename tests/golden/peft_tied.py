"""Adapters of peft on the embedding and the head of models that tie them, with peft's losses.

peft_tied.py FAMILIES OUT      writes OUT/NAME for each case: an adapter of a model in FAMILIES (tests/golden/families), as peft saves
                               it, and nll.json: the model, ids and the loss of each id after the first, in nats, of the
                               adapter that peft loads from there
Exit 77 and a reason where peft is missing.
"""

import json
import os
import sys
import warnings

from peer_modules import modules_or_skip

with modules_or_skip():
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from safetensors.torch import load_file, save_file
    from transformers import AutoModelForCausalLM

TIE = {"ensure_weight_tying": True}
Q = ["q_proj"]
# NAME: model, configuration and what is changed in the file: tensors that are left out, or changed by a factor.
CASES = {
    "embedding": ("gemma3_text", {"target_modules": ["embed_tokens"]}),
    "head": ("gemma3_text", {"target_modules": ["lm_head"]}),
    "both": ("gemma3_text", {"target_modules": ["embed_tokens", "lm_head"], "rank_pattern": {"lm_head": 3}}),
    "save_embedding": ("gemma3_text", {"target_modules": Q, "modules_to_save": ["embed_tokens"]}),
    "save_head": ("gemma3_text", {"target_modules": Q, "modules_to_save": ["head"]}),
    "save_both": ("gemma3_text", {"target_modules": Q, "modules_to_save": ["embed_tokens", "lm_head"]}),
    "mixed": ("gemma3_text", {"target_modules": ["lm_head", *Q], "modules_to_save": ["embed_tokens"]}),
    "tie_embedding": ("gemma3_text", {"target_modules": ["embed_tokens"], **TIE}),
    "tie_head": ("gemma3_text", {"target_modules": ["lm_head", *Q], **TIE}),
    "tie_alpha": ("gemma3_text", {"target_modules": ["embed_tokens"], "rank_pattern": {"embed_tokens": 3}, "alpha_pattern": {"lm_head": 9}, **TIE}),
    "tie_pattern": ("gemma3_text", {"target_modules": r"embed_tokens|.*q_proj", **TIE}),
    "tie_whole_name": ("gemma3_text", {"target_modules": r"model\.embed_tokens|.*q_proj", **TIE}),
    "tie_nothing": ("gemma3_text", {"target_modules": Q, **TIE}),
    "tie_saved": ("gemma3_text", {"target_modules": Q, "modules_to_save": ["lm_head"], **TIE}),
    "tie_left_out": ("gemma3_text", {"target_modules": ["embed_tokens"], **TIE}, "lm_head.", None),
    "base_changed": ("gemma3_text", {"target_modules": ["embed_tokens"]}, "base_layer", 1.5),
    "wte": ("gpt_neo", {"target_modules": ["wte", "lm_head"]}),
    "wte_tie": ("gpt_neo", {"target_modules": ["wte"], **TIE}),
    "decoder": ("opt", {"target_modules": ["embed_tokens", *Q], **TIE}),
}
IDS = [3, 5, 9, 1, 7, 2, 11, 4, 6, 3, 12, 9, 8]


def nll(model):
    ids = torch.tensor([IDS])
    with torch.no_grad():
        logits = model.eval()(input_ids=ids).logits[0, :-1].double()
    return (-logits.log_softmax(-1).gather(1, ids[0, 1:, None])).flatten().tolist()


def main(families, out):
    warnings.simplefilter("ignore")
    for name, (family, more, *change) in CASES.items():
        os.chdir(families)
        torch.manual_seed(7)

        def base():
            return AutoModelForCausalLM.from_pretrained(family, dtype=torch.float32, attn_implementation="eager")

        adapted = get_peft_model(base(), LoraConfig(r=2, lora_alpha=5, task_type="CAUSAL_LM", **more))
        with torch.no_grad():
            for values in adapted.parameters():
                if values.requires_grad:
                    values.add_(0.3 * torch.randn_like(values))
        folder = os.path.join(out, name)
        adapted.save_pretrained(folder)
        os.remove(os.path.join(folder, "README.md"))
        path = os.path.join(folder, "adapter_model.safetensors")
        tensors = load_file(path)
        for tensor in list(tensors):
            if change and change[0] in tensor:
                if change[1] is None:
                    del tensors[tensor]
                else:
                    tensors[tensor] = tensors[tensor] * change[1]
        save_file(tensors, path, metadata={"format": "pt"})
        losses = nll(PeftModel.from_pretrained(base(), folder))
        with open(os.path.join(folder, "nll.json"), "w") as record:
            json.dump({"model": family, "ids": IDS, "nll": losses}, record)


main(*(os.path.abspath(path) for path in sys.argv[1:]))
