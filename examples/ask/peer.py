"""peer.py MODEL: answers prompts with llama.cpp, greedily, as judge's rows do with sample.

MODEL is a GGUF file. stdin has a JSON string on each line: a prompt as the model reads it, with the text of special tokens.
stdout has the answers, in the same form. Needs llama-cpp-python.
"""

import json
import sys

import llama_cpp

model = llama_cpp.Llama(sys.argv[1], n_ctx=2048, verbose=False)
for line in sys.stdin:
    tokens = model.tokenize(json.loads(line).encode(), add_bos=False, special=True)
    answer = model.create_completion(tokens, temperature=0, max_tokens=48)
    print(json.dumps(answer["choices"][0]["text"]))
