#!/usr/bin/env python3
"""decoders.py: writes decoders.json: decoders of a tokenizer.json, and what Hugging Face's tokenizers makes of ids of pipelines/llama2.json
with each. Needs tokenizers."""
import json
import os

from tokenizers import Tokenizer

folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "pipelines/llama2.json"), encoding="utf-8") as file:
    base = json.load(file)
MARK = "\u2581"


def replace(old, new):
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def metaspace(scheme):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": True}


BYTES, FUSE, SPACE = {"type": "ByteFallback"}, {"type": "Fuse"}, replace(MARK, " ")
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
sequences = [[SPACE, BYTES, FUSE, STRIP], [SPACE, BYTES, FUSE], [SPACE, BYTES], [replace("a", "XY"), BYTES, FUSE], [replace("a", "b"), replace("b", "aa"), SPACE, BYTES],
             [replace(MARK, ""), BYTES], [replace("the", ""), SPACE, BYTES, FUSE, STRIP], [BYTES, FUSE], [metaspace("always"), BYTES], [metaspace("never"), BYTES],
             [metaspace("first"), BYTES, FUSE], [BYTES],
             [SPACE], [FUSE], [SPACE, FUSE, STRIP], [metaspace("always")], [replace("0x", "-"), replace(">", "")]]
decoders = [{"type": "Sequence", "decoders": steps} for steps in sequences]
plain = Tokenizer.from_str(json.dumps(base))
plain.encode_special_tokens = True
# Metaspace loses all spaces at the start of a text there, and one here, so no text begins with one.
texts = ["the lamp that a man had", "a", "\u00e9\u4f60 bat", "", "than  abba\n"]
ids = [plain.encode(text, add_special_tokens=False).ids for text in texts]
rows = []
for decoder in decoders:
    tokenizer = Tokenizer.from_str(json.dumps({**base, "decoder": decoder}))
    rows.append({"decoder": decoder, "texts": [tokenizer.decode(one, skip_special_tokens=False) for one in ids]})
with open(os.path.join(folder, "decoders.json"), "w", encoding="utf-8") as file:
    file.write('{"ids": ' + json.dumps(ids) + ',\n"decoders": [\n' + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]}\n")
