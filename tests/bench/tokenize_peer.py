"""MB of text a second that other programs encode or learn from; the text is the member of JSON lines.

tokenize_peer.py tiktoken RANKS FILE      CPU seconds of encode_ordinary, one thread
tokenize_peer.py NAME RANKS FILE          the same with the splitter of tests/golden/tokenizers/pipelines/NAME.json
tokenize_peer.py with JSON NAME           prints the tokenizer with that splitter and its normaliser
tokenize_peer.py pattern JSON PATTERN     prints the tokenizer split by that pattern
tokenize_peer.py tokenizers JSON FILE     CPU seconds of encode, one thread, the first 4 MB
tokenize_peer.py parallel JSON FILE       seconds of encode_batch on all processors, 1,000 texts at a time
tokenize_peer.py train SIZE FILE          seconds of BPE training
"""

import json
import os
import sys
import time

PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def pipeline(name):
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden/tokenizers/pipelines")
    path = os.path.join(folder, name + ".json")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    what, with_what, path = sys.argv[1:]
    if what == "with":
        with open(with_what, encoding="utf-8") as file:
            tokenizer, other = json.load(file), pipeline(path)
        for key in ("pre_tokenizer", "normalizer"):
            tokenizer[key] = other[key]
        print(json.dumps(tokenizer, ensure_ascii=False))
        return
    if what == "pattern":
        with open(with_what, encoding="utf-8") as file:
            tokenizer = json.load(file)
        split = {"type": "Split", "pattern": {"Regex": path}, "behavior": "Isolated", "invert": False}
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
        tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, level]}
        print(json.dumps(tokenizer, ensure_ascii=False))
        return
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if what == "parallel" else "false"
    with open(path, encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    if what == "tokenizers":
        texts = texts[: max(1, len(texts) // 10)]
    megabytes = sum(len(text.encode("utf-8")) for text in texts) / 1e6
    other = pipeline(what)
    if what == "tiktoken" or other:
        import base64

        import tiktoken

        with open(with_what, "rb") as file:
            ranks = {base64.b64decode(t): int(r) for t, r in (line.split() for line in file)}
        pattern = other["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] if other else PATTERN
        encoding = tiktoken.Encoding("gpt2", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        start = time.process_time()
        for text in texts:
            encoding.encode_ordinary(text)
        seconds = time.process_time() - start
    elif what == "tokenizers":
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(with_what)
        start = time.process_time()
        for text in texts:
            tokenizer.encode(text)
        seconds = time.process_time() - start
    elif what == "parallel":
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(with_what)
        start = time.perf_counter()
        for i in range(0, len(texts), 1000):
            tokenizer.encode_batch(texts[i : i + 1000])
        seconds = time.perf_counter() - start
    else:
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=int(with_what),
            min_frequency=2,
            show_progress=False,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
        start = time.time()
        tokenizer.train_from_iterator(texts, trainer)
        seconds = time.time() - start
    print(megabytes / seconds)


if __name__ == "__main__":
    main()
