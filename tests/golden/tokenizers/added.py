#!/usr/bin/env python3
"""added.py: writes added.json: tokenizer.json files with added tokens outside the model's vocabulary, texts that have them as ordinary text, and
the ids of Hugging Face's tokenizers (encode_special_tokens). Needs tokenizers."""
import json
import os

from tokenizers import Tokenizer

MARK = "\u2581"
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
SPACE = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
WHITE = {"type": "WhitespaceSplit"}
METASPACE = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "never", "split": True}


def added(number, content, special=True, single_word=False):
    flags = {"normalized": False, "lstrip": False, "rstrip": False, "single_word": single_word}
    return {"id": number, "content": content, "special": special, **flags}


def bpe(vocabulary, merges, **flags):
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None}
    model.update({"end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}, **flags)
    return {**model, "vocab": vocabulary, "merges": merges}


def pieces(**flags):
    return bpe({"<unk>": 0, MARK: 1, "a": 2, "b": 3, "ab": 4}, ["a b"], unk_token="<unk>", fuse_unk=True, **flags)


letters = {letter: i for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz\u0120")}
few = {"a": 0, "b": 1, "ab": 2}
units = {"<unk>": 0, "a": 1, "b</w>": 2, "ab</w>": 3}
# model, added tokens, pre_tokenizer, normalizer, texts
cases = [
    (bpe({**letters, "call": 27}, [], ignore_merges=True), [added(27, "call"), added(28, "toolcall")], BYTES, None, ["toolcall x", "call", "a toolcall"]),
    (bpe(few, ["a b"]), [added(3, "!"), added(4, "x", False, True)], BYTES, None, ["a!b ab", "axb"]),
    (pieces(), [added(0, "<unk>"), added(5, "\u00a7")], None, SPACE, ["a \u00a7b", "\u00a7", "ab"]),
    (pieces(), [added(5, "\u00a7", False, True), added(6, "aba", False, True)], None, SPACE, ["a a\u00a7b", "a \u00a7 b", "ababa aba"]),
    (pieces(ignore_merges=True), [added(5, "ba"), added(6, MARK + "ba")], METASPACE, None, ["ba", "ba ba ab"]),
    (bpe(units, ["a b</w>"], unk_token="<unk>", end_of_word_suffix="</w>"), [added(4, "c"), added(5, "c</w>")], WHITE, None, ["ab", "cab ac", "c"]),
    ({"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "a": 1}}, [added(2, "[SEP]")], WHITE, None, ["a [SEP] [UNK]"]),
]
rows = []
for model, tokens, pre_tokenizer, normalizer, texts in cases:
    file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer}
    file.update({"post_processor": None, "decoder": None, "model": model})
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.encode_special_tokens = True
    rows.append({"file": file, "texts": texts, "ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]})
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "added.json"), "w", encoding="utf-8") as file:
    file.write("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
