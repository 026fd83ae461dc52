#!/usr/bin/env python3
"""Tokenizers of every pipeline that people's models have, made and used by Hugging Face's tokenizers.

pipelines.py make FOLDER SIZE FILE...   learn them from the files, about SIZE tokens each, into FOLDER/NAME.json
pipelines.py ids TOKENIZER.json JSONL   ids of the "text" of each line, a line each
pipelines.py sums TOKENIZER.json JSONL  of each line FNV-1a (32 bits) of its ids, little-endian uint32
pipelines.py texts FILE...              the files as JSON lines, 400 characters each
pipelines.py random SEED N              N random Unicode strings as JSON lines
pipelines.py special FOLDER             of each FOLDER/NAME.json texts with its special tokens, and their ids, as JSON

Exit 77 if the module is missing.
"""

import json
import os
import random
import sys

C = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SLASH = TAIL.replace(r"[\r\n]*", r"[\r\n/]*", 1)
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LEAD = r"[^\r\n\p{L}\p{N}]?"
LLAMA3 = C + "|" + LEAD + r"\p{L}+|\p{N}{1,3}|" + TAIL
QWEN2 = C + "|" + LEAD + r"\p{L}+|\p{N}|" + TAIL
O200K = f"{LEAD}{UPPER}*{LOWER}+{C}?|{LEAD}{UPPER}+{LOWER}*{C}?|" + r"\p{N}{1,3}|" + SLASH
TEKKEN = f"{LEAD}{UPPER}*{LOWER}+|{LEAD}{UPPER}+{LOWER}*|" + r"\p{N}|" + SLASH
CHINESE = "[一-龥぀-ゟ゠-ヿ]+"
DEEPSEEK = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
MARK = "\u2581"
# What texts are made of that these tokenizers may stumble over.
CONTENTS = ["<tool_call>", "</think>", "<|im_end|>", "<s>", "<|x|>", "  ", "    ", "word", "<unk>", "<0x41>", MARK]


def byte_level(use_regex=False):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def split(regex, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


def sequence(name, *steps):
    return {"type": "Sequence", name: list(steps)}


def added(content, special=False, **flags):
    token = {"content": content, "special": special, "normalized": False}
    token.update({"lstrip": False, "rstrip": False, "single_word": False}, **flags)
    return token


def template(token):
    piece = {"SpecialToken": {"id": token, "type_id": 0}}
    text, pair = ({"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB"))
    special = {token: {"id": token, "ids": [None], "tokens": [token]}}
    return {"type": "TemplateProcessing", "single": [piece, text], "pair": [piece, text, pair], "special_tokens": special}


def metaspace(scheme, cut):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": cut}


REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
STRIP = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]
BACK = [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
END = added("<|endoftext|>", True)

# name: (pre_tokenizer, normalizer, added tokens, of the model and post_processor)
BYTES = {
    "llama3": (sequence("pretokenizers", split(LLAMA3), byte_level()), None, [added("<|begin_of_text|>", True), END], True),
    "qwen2": (
        sequence("pretokenizers", split(QWEN2), byte_level()),
        {"type": "NFC"},
        [END, added("<|im_end|>", True), added("<tool_call>"), added("</think>")],
        False,
    ),
    "o200k": (sequence("pretokenizers", split(O200K, "Removed", True), byte_level()), None, [END], False),
    "tekken": (sequence("pretokenizers", split(TEKKEN), byte_level()), None, [END], False),
    "smollm": (sequence("pretokenizers", {"type": "Digits", "individual_digits": True}, byte_level(True)), None, [END], False),
    "digits": (sequence("pretokenizers", {"type": "Digits", "individual_digits": False}, byte_level(True)), None, [END], False),
    "neox": (byte_level(True), {"type": "NFC"}, [END] + [added(" " * n, normalized=True) for n in range(8, 1, -1)], False),
    "deepseek": (
        sequence("pretokenizers", split(r"\p{N}{1,3}"), split(CHINESE), split(DEEPSEEK), byte_level()),
        sequence("normalizers"),
        [END, added("<|x|>", lstrip=True), added("<tool_call>", rstrip=True)],
        False,
    ),
    "lower": (
        sequence("pretokenizers", split(r"\p{L}+|\s+|[^\s\p{L}]", "MergedWithNext"), byte_level()),
        sequence("normalizers", {"type": "NFKC"}, {"type": "Lowercase"}),
        [END, added("word", single_word=True, normalized=True), added("<tool_call>", normalized=True)],
        False,
    ),
}
# name: (pre_tokenizer, normalizer, added tokens, byte fallback, strips the prefix)
CHARACTERS = {
    "llama2": (
        None,
        sequence("normalizers", {"type": "Prepend", "prepend": MARK}, REPLACE),
        [added("<tool_call>"), added("<|im_end|>", True, rstrip=True), added("<|x|>", rstrip=True), added("word", normalized=True)],
        True,
        True,
    ),
    "mistral": (metaspace("first", False), None, [added("<tool_call>")], True, True),
    "gemma": (
        {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        REPLACE,
        [added("\n\n"), added("  ")],
        True,
        False,
    ),
    "metaspace": (metaspace("always", True), None, [added("<tool_call>"), added("<|x|>", lstrip=True)], False, True),
    "numbers": (
        sequence("pretokenizers", metaspace("never", True), {"type": "Digits", "individual_digits": True}),
        {"type": "NFKC"},
        [],
        False,
        False,
    ),
}


def texts(paths):
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            yield file.read()


def finish(model, pre_tokenizer, normalizer, tokens, decoder, after):
    vocabulary = model["vocab"]
    entries = []
    for token in tokens:
        number = vocabulary.get(token["content"], len(vocabulary) + sum(t["content"] not in vocabulary for t in entries))
        entries.append({"id": number, **token})
    if after and "single" in after:
        name = after["single"][0]["SpecialToken"]["id"]
        number = vocabulary.get(name, next((t["id"] for t in entries if t["content"] == name), None))
        after["special_tokens"][name]["ids"] = [number]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": entries,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": after,
        "decoder": decoder,
        "model": model,
    }


def bpe(merges, vocabulary, **flags):
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None}
    model.update({"end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}, **flags)
    return {**model, "vocab": vocabulary, "merges": merges}


def make_bytes(name, size, paths):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    pre_tokenizer, normalizer, tokens, whole = BYTES[name]
    raw = finish(bpe([], {}), pre_tokenizer, normalizer, [], byte_level(True), None)
    tokenizer = Tokenizer.from_str(json.dumps(raw))
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts(paths), trainer)
    learned = json.loads(tokenizer.to_str())["model"]
    after = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    if whole:
        learned["ignore_merges"] = True
        learned["vocab"]["lampkeeper"] = len(learned["vocab"])
        after = template("<|begin_of_text|>")
    return finish(learned, pre_tokenizer, normalizer, tokens, byte_level(True), after)


def make_characters(name, size, paths):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    pre_tokenizer, normalizer, tokens, fallback, prefixed = CHARACTERS[name]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always", split=True)
    # Rare characters stay without a token of their own.
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, limit_alphabet=60)
    tokenizer.train_from_iterator(texts(paths), trainer)
    learned = json.loads(tokenizer.to_str())["model"]
    marks = ["<unk>", "<s>", "</s>"] + ([f"<0x{b:02X}>" for b in range(256)] if fallback else [])
    names = marks + [name for name in sorted(learned["vocab"], key=learned["vocab"].get) if name not in marks]
    merges = [[MARK, MARK], [MARK * 2, MARK * 2]] + [pair for pair in learned["merges"] if "".join(pair) not in marks]
    merges = [pair for pair in merges if not set(pair) & set(marks)]
    names += [name for name in (MARK * 2, MARK * 4) if name not in names]
    vocabulary = {name: i for i, name in enumerate(names)}
    model = bpe(merges, vocabulary, unk_token="<unk>", fuse_unk=True, byte_fallback=fallback)
    specials = [added(mark, True) for mark in marks[:3]]
    decoder = sequence("decoders", *BACK, *(STRIP if prefixed else []))
    return finish(model, pre_tokenizer, normalizer, specials + tokens, decoder, template("<s>"))


def make(folder, size, paths):
    for make_one, names in ((make_bytes, BYTES), (make_characters, CHARACTERS)):
        for name in names:
            with open(f"{folder}/{name}.json", "w", encoding="utf-8") as file:
                json.dump(make_one(name, size, paths), file, ensure_ascii=False, separators=(",", ":"))
                file.write("\n")


def encoded(path, lines):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.encode_special_tokens = True
    with open(lines, encoding="utf-8") as file:
        all_texts = [json.loads(line)["text"] for line in file]
    return [encoding.ids for encoding in tokenizer.encode_batch(all_texts, add_special_tokens=False)]


def sum_of(ids):
    value = 0x811C9DC5
    for number in ids:
        for byte in number.to_bytes(4, "little"):
            value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{value:08x}"


def random_texts(seed, n):
    import unicodedata

    rng = random.Random(seed)
    # Characters that every table of Unicode since 12 knows.
    known = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in ("Cn", "Cs")]
    known = [c for c in known if unicodedata.ucd_3_2_0.category(c) != "Cn"]
    blocks = [known[i : i + 128] for i in range(0, len(known), 128) if ord(known[i]) < 0x3400 or ord(known[i]) > 0xF8FF]
    pieces = list(" \n\t\r'.,-_/12aAZé") + ["\r\n", "'s", "'LL", "'\u017f", "the ", " The", "\u0301", "\u0323"] + CONTENTS
    for _ in range(n):
        text = ""
        block = rng.choice(blocks)
        while rng.random() < 0.93:
            kind = rng.random()
            text += rng.choice(pieces if kind < 0.5 else block if kind < 0.9 else known)
        print(json.dumps({"text": text}, ensure_ascii=False))


def special(folder):
    from tokenizers import Tokenizer

    rows = {}
    for name in sorted(file[:-5] for file in os.listdir(folder) if file.endswith(".json")):
        path = os.path.join(folder, name + ".json")
        tokenizer = Tokenizer.from_file(path)
        with open(path, encoding="utf-8") as file:
            marks = [token["content"] for token in json.load(file)["added_tokens"] if token["special"]]
        a, b = marks[0], marks[-1]
        texts = [f"{a}user\nHello the word{b}\n{a}", f" {a} the", f"the{a}lampkeeper{b}x", a + a + b, f"x  {b}  y 12345",
                 f"{a[:-1]} {b}", f"{b}\u00e9\u4f60{a}\t"]
        rows[name] = [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in texts]
    lines = [json.dumps(name) + ": [\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in of) + "]" for name, of in rows.items()]
    print("{\n" + ",\n".join(lines) + "\n}")


def main():
    verb, *rest = sys.argv[1:] or [""]
    try:
        if verb == "make" and len(rest) > 2:
            make(rest[0], int(rest[1]), rest[2:])
        elif verb in ("ids", "sums") and len(rest) == 2:
            for numbers in encoded(*rest):
                print(sum_of(numbers) if verb == "sums" else " ".join(map(str, numbers)))
        elif verb == "texts":
            for text in texts(rest):
                for at in range(0, len(text), 400):
                    print(json.dumps({"text": text[at : at + 400]}, ensure_ascii=False))
        elif verb == "random" and len(rest) == 2:
            random_texts(int(rest[0]), int(rest[1]))
        elif verb == "special" and len(rest) == 1:
            special(rest[0])
        else:
            sys.exit(__doc__)
    except ImportError as missing:
        print(missing, file=sys.stderr)
        sys.exit(77)


if __name__ == "__main__":
    main()
