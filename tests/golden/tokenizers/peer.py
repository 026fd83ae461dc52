#!/usr/bin/env python3
"""Token ids by other programs, for tests to compare with.

peer.py hf TOKENIZER.json FILE...        Hugging Face's tokenizers; ids of the files one after the other
peer.py tiktoken RANKS.tiktoken FILE...  tiktoken with GPT-2's pattern
peer.py world VOCABULARY FILE...         RWKV's own tokenizer (package rwkv)
peer.py train SIZE FILE...               learn byte-level BPE with tokenizers, print its merges
peer.py split - FILE...                  GPT-2's pre-tokens, one a line, in its byte alphabet
peer.py hard SEED BYTES                  text that is hard to split: all classes of characters, mixed
peer.py sample FILE BYTES                the first BYTES of FILE (.zst: of its content), whole characters

Ids go to stdout as little-endian uint32. Exit 77 if the module is missing.
"""

import array
import subprocess
import sys

PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def texts(paths):
    for path in paths:
        with open(path, "rb") as file:
            yield file.read().decode("utf-8")


def write_ids(ids):
    numbers = array.array("I", ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    numbers.tofile(sys.stdout.buffer)


def hf(tokenizer_path, paths):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(tokenizer_path)
    tokenizer.encode_special_tokens = True
    for text in texts(paths):
        write_ids(tokenizer.encode(text, add_special_tokens=False).ids)


def tiktoken(ranks_path, paths):
    import base64

    import tiktoken as module

    with open(ranks_path, "rb") as file:
        ranks = {base64.b64decode(t): int(r) for t, r in (line.split() for line in file if line.strip())}
    encoding = module.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    for text in texts(paths):
        write_ids(encoding.encode_ordinary(text))


def world(vocabulary_path, paths):
    from rwkv.rwkv_tokenizer import TRIE_TOKENIZER

    tokenizer = TRIE_TOKENIZER(vocabulary_path)
    for text in texts(paths):
        write_ids(tokenizer.encode(text))


def train(size, paths):
    import json

    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=int(size),
        min_frequency=2,
        show_progress=False,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts(paths), trainer)
    for merge in json.loads(tokenizer.to_str())["model"]["merges"]:
        print(merge if isinstance(merge, str) else " ".join(merge))


def split(_, paths):
    from tokenizers import pre_tokenizers

    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for text in texts(paths):
        for piece, _ in splitter.pre_tokenize_str(text):
            sys.stdout.buffer.write(piece.encode("utf-8") + b"\n")


def hard(seed, n):
    import random

    rng = random.Random(int(seed))
    pieces = list("  \n\n\t\r'',.!-_aeszZ019'") + "'s 't 're 've 'm 'll 'd 'l 'r 'S the 2024".split()
    pieces += list("éßñΩжяאעمن你世カ가ǅʼª") + list("٣४Ⅷ²①〇½") + list("\u00a0\u2003\u3000\u0085\u2028\x0b\x0c")
    pieces += list("😀❤\ufe0f\u200d\u0301\u00ad€—…\u200b\x1c\x00\x7f\U000e0067") + ["   ", " the"]
    text = ""
    while len(text.encode("utf-8")) < int(n):
        text += rng.choice(pieces)
    sys.stdout.buffer.write(text.encode("utf-8"))


def sample(path, n):
    n = int(n)
    if path.endswith(".zst"):
        with subprocess.Popen(["zstdcat", path], stdout=subprocess.PIPE) as unpacked:
            data = unpacked.stdout.read(n)
            unpacked.kill()
    else:
        with open(path, "rb") as file:
            data = file.read(n)
    sys.stdout.buffer.write(data.decode("utf-8", errors="ignore").encode("utf-8"))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    verb, first, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    lists = {"hf": hf, "tiktoken": tiktoken, "world": world, "train": train, "split": split}
    try:
        if verb in lists:
            lists[verb](first, rest)
        else:
            {"hard": hard, "sample": sample}[verb](first, rest[0])
    except ImportError as missing:
        print(missing, file=sys.stderr)
        sys.exit(77)


if __name__ == "__main__":
    main()
