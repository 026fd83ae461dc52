#!/usr/bin/env python3
"""score_peer make FOLDER QUESTIONS | run FOLDER

make: of FOLDER/text and FOLDER/tokenizer.json a GPT-2 small with random weights, as transformers saves it, in FOLDER/model,
and FOLDER/questions.jsonl, contexts of 2,000 tokens with four choices of four tokens each, so that all are cut
alike. run: questions a second of lm-evaluation-harness with transformers' model, float32, batches of 4; exits 1 unless its log-probabilities are those of
FOLDER/answers."""
import json
import sys
import time

import torch
import transformers

transformers.logging.set_verbosity_error()
folder = sys.argv[2]
if sys.argv[1] == "make":
    torch.manual_seed(1)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json", eos_token="<|endoftext|>")
    transformers.GPT2LMHeadModel(transformers.GPT2Config()).save_pretrained(f"{folder}/model")
    tokenizer.save_pretrained(f"{folder}/model")
    with open(f"{folder}/text", encoding="utf-8") as file:
        text = file.read(10_000_000)
    with open(f"{folder}/questions.jsonl", "w", encoding="utf-8") as file:
        for number in range(int(sys.argv[3])):
            part = text[number * 20_000 : (number + 1) * 20_000]
            context = tokenizer.decode(tokenizer(part)["input_ids"][:2000]).rstrip()
            choices = [" the man and the", " a man of a", " the day of the", " a day and a"]
            print(json.dumps({"id": number, "context": context, "choices": choices}), file=file)
    sys.exit()

from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

with open(f"{folder}/questions.jsonl", encoding="utf-8") as file:
    questions = [json.loads(line) for line in file]
with open(f"{folder}/answers", encoding="utf-8") as file:
    answers = [choice["log_prob"] for line in file for choice in json.loads(line)["choices"]]
model = HFLM(pretrained=f"{folder}/model", device="cpu", dtype="float32", batch_size=4)


def requests(some):
    return [Instance("loglikelihood", {}, (q["context"], choice), i) for i, q in enumerate(some) for choice in q["choices"]]


model.loglikelihood(requests(questions[:1]), disable_tqdm=True)
start = time.perf_counter()
found = model.loglikelihood(requests(questions), disable_tqdm=True)
seconds = time.perf_counter() - start
for (log_prob, _), ours in zip(found, answers, strict=True):
    if abs(log_prob - ours) > 1e-2:
        sys.exit(f"{log_prob} and {ours}")
print(f'{{"questions_per_s": {len(questions) / seconds:.6g}}}')
