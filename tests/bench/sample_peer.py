#!/usr/bin/env python3
"""sample_peer make FOLDER gpt2|llama | run FOLDER ROWS BEAMS TOKENS

make: a GPT-2 small, or a Llama of 134 M parameters, with random weights, as transformers saves it. run: tokens a second of transformers' generate, float32,
for ROWS prompts of 8 tokens, BEAMS hypotheses each (1: greedy), TOKENS new ones; the second of two calls counts."""
import sys
import time

import torch
import transformers

transformers.logging.set_verbosity_error()
folder = sys.argv[2]
if sys.argv[1] == "make":
    torch.manual_seed(1)
    if sys.argv[3] == "llama":  # the shape of SmolLM-135M
        transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
            num_key_value_heads=3, tie_word_embeddings=True)).save_pretrained(folder)
    else:
        transformers.GPT2LMHeadModel(transformers.GPT2Config()).save_pretrained(folder)
    sys.exit()

rows, beams, tokens = map(int, sys.argv[3:])
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
prompts = torch.tensor([list(b"The cat " if row == 0 else b"The dog ") for row in range(rows)])
options = dict(do_sample=False, num_beams=beams, max_new_tokens=tokens, min_new_tokens=tokens,
               eos_token_id=None, pad_token_id=0, attention_mask=torch.ones_like(prompts))
with torch.inference_mode():
    model.generate(prompts, **{**options, "max_new_tokens": 4, "min_new_tokens": 4})
    start = time.perf_counter()
    made = model.generate(prompts, **options)
    seconds = time.perf_counter() - start
assert made.shape[1] == prompts.shape[1] + tokens, made.shape
print(f'{{"tokens_per_s": {rows * tokens / seconds:.6g}}}')
