"""What peft makes of an adapter that Tessera trained, and adapters as peft writes them.

hf_peft.py COMMAND MODEL ADAPTER ID...
  loss   prints the mean loss of the ids, in nats, of the model with the adapter, then with what AutoPeftModel finds
  make   writes ADAPTER, at random, as peft saves one (other ranks for some matrices, rslora; $CONFIG: the JSON of another
         configuration), and prints its loss
Exit 77 and a reason where transformers or peft is missing.
"""

import json
import os
import sys

from peer_modules import modules_or_skip

with modules_or_skip():
    import torch
    from peft import AutoPeftModelForCausalLM, LoraConfig, PeftModel, get_peft_model
    from transformers import AutoModelForCausalLM


def loss(model, ids):
    with torch.no_grad():
        logits = model.eval()(input_ids=ids).logits[0, :-1].double()
    return -logits.log_softmax(-1).gather(1, ids[0, 1:, None]).mean().item()


def main(command, folder, adapter="", *words):
    if command == "none":
        return
    ids = torch.tensor([[int(word) for word in words]])
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    if command == "loss":
        print(repr(loss(PeftModel.from_pretrained(model, adapter), ids)))
        print(repr(loss(AutoPeftModelForCausalLM.from_pretrained(adapter, dtype=torch.float32), ids)))
        return
    torch.manual_seed(3)
    default = '{"target_modules": ["q_proj", "down_proj"], "rank_pattern": {"down_proj": 2}, "alpha_pattern": {"down_proj": 7}}'
    config = LoraConfig(
        r=3, lora_alpha=5, use_rslora=True, task_type="CAUSAL_LM", init_lora_weights="gaussian",
        **json.loads(os.environ.get("CONFIG", default)),
    )
    adapted = get_peft_model(model, config)
    with torch.no_grad():
        for name, values in adapted.named_parameters():
            if "lora_B" in name or "lora_embedding" in name or "modules_to_save" in name:
                values.copy_(0.3 * torch.randn_like(values))
    adapted.save_pretrained(adapter)
    print(repr(loss(adapted, ids)))


try:
    main(*sys.argv[1:])
except Exception as error:  # stderr is full of progress bars
    print(f"{type(error).__name__}: {error}")
    sys.exit(1)
