#!/usr/bin/env python3
"""Models that the sentencepiece package trains, with symbols of all kinds, and the ids that it and transformers give for hard texts.

sentencepiece_peer.py make SEED N FOLDER   train the models and encode N texts. FOLDER then has texts.jsonl and, for each NAME,
    NAME.model or NAME/ (tokenizer.model, tokenizer_config.json), and NAME.ids (the ids of a text on a line); for a model also
    NAME.texts (a line of JSON: what sentencepiece decodes from them), for a folder NAME.special (ids where the texts of special
    tokens are these tokens)
sentencepiece_peer.py pack FOLDER          the same as one JSON on stdout, models in hexadecimal
sentencepiece_peer.py compare FILE IDS     compare ids, a text on a line, with NAME.ids or NAME.special; exit 1 if they differ

`make 1 1000 DIR` and `pack DIR | zstd -19 --ultra -22` made sentencepiece_peer.json.zst. Run in the root of the source tree.
Exit 77 if a module is missing."""
import io
import json
import os
import pathlib
import random
import shutil
import sys

# Symbols that rules would change, that overlap, that spaces become, that contain or begin with a space.
SYMBOLS = ["<sep>", "<|im_start|>", "\u2581\u2581", "\u2581\u2581\u2581", "\u2581" * 6, "ab", "bab", "\u2460", "a b", " z", "e\u0301", "[x]", "."]
CONTROLS = ["<ctl>", "<mask>", "\u4f60"]  # the last is a character of the texts
ADDED = {
    "<|user|>": {"special": True, "rstrip": True},
    "<|end|>": {"special": True, "lstrip": True},
    "<tool>": {"special": False, "normalized": True},
    "<tool>>": {"special": False, "normalized": False},
    "word": {"special": False, "normalized": False, "single_word": True},
}
# White space that other tokens include.
SPACES = {"\n\n": {"lstrip": True, "rstrip": True}, "  ": {"lstrip": True}, "\r\n": {"rstrip": True}}
RULES = "9\t20\nA\t20\n65 301\tE9\nFB01\t66 69\nAD\t\n71 75\t6B 77\n3000\t20 20\nA8\t20 308\n"
MODELS = {
    "unigram": {"model_type": "unigram", "vocab_size": 300, "normalization_rule_tsv": RULES},
    "unigram_identity": {"model_type": "unigram", "vocab_size": 560, "byte_fallback": True, "normalization_rule_name": "identity",
                         "remove_extra_whitespaces": False, "user_defined_symbols": SYMBOLS, "control_symbols": CONTROLS},
    "unigram_nfkc": {"model_type": "unigram", "vocab_size": 300, "normalization_rule_name": "nmt_nfkc",
                     "user_defined_symbols": SYMBOLS, "control_symbols": CONTROLS},
    "unigram_bare": {"model_type": "unigram", "vocab_size": 300, "normalization_rule_tsv": RULES, "add_dummy_prefix": False,
                     "user_defined_symbols": SYMBOLS, "unk_surface": "?"},
    "bpe": {"model_type": "bpe", "vocab_size": 400, "normalization_rule_tsv": RULES},
    "bpe_identity": {"model_type": "bpe", "vocab_size": 560, "byte_fallback": True, "normalization_rule_name": "identity",
                     "remove_extra_whitespaces": False, "user_defined_symbols": SYMBOLS, "control_symbols": CONTROLS},
    "bpe_nfkc": {"model_type": "bpe", "vocab_size": 400, "normalization_rule_name": "nmt_nfkc", "user_defined_symbols": SYMBOLS,
                 "control_symbols": CONTROLS},
    "bpe_runs": {"model_type": "bpe", "vocab_size": 560, "byte_fallback": True, "normalization_rule_name": "identity",
                 "remove_extra_whitespaces": False, "add_dummy_prefix": False, "allow_whitespace_only_pieces": True,
                 "user_defined_symbols": ["\u2581" * n for n in range(2, 17)] + ["\n\n", "<start_of_turn>"]},
    # Scores that are multiples of a number, so that many are equal, as of pieces that a user adds to a model.
    "unigram_ties": {"model_type": "unigram", "vocab_size": 300, "normalization_rule_name": "identity", "ties": 1},
    "bpe_ties": {"model_type": "bpe", "vocab_size": 400, "normalization_rule_name": "identity", "ties": 8},
    # No <unk> in its bytes.
    "bpe_named": {"model_type": "bpe", "vocab_size": 300, "normalization_rule_name": "identity", "unk_piece": "[UNK]",
                  "bos_piece": "[BOS]", "eos_piece": "[EOS]", "user_defined_symbols": ["<sep>"]},
}
LLAMA = {"tokenizer_class": "LlamaTokenizer"}
FOLDERS = {
    "llama": ("bpe_identity", LLAMA),
    "llama_new": ("bpe_identity", {"tokenizer_class": "LlamaTokenizerFast", "legacy": False}),
    "llama_old": ("bpe_identity", LLAMA | {"legacy": True}),
    "llama_bare": ("bpe_runs", LLAMA | {"add_prefix_space": False}),
    "llama_nfkc": ("bpe_nfkc", LLAMA),
    # With added_tokens.json instead of added_tokens_decoder.
    "llama_older": ("bpe_identity", LLAMA | {"pad_token": "<|end|>"}),
    # Lists of special tokens, which replace the model's own; tokens with a role.
    "llama_listed": ("bpe_identity", LLAMA | {"additional_special_tokens": ["<|im_start|>", "<start_of_turn>"], "eos_token": "<sep>"}),
    "llama_empty": ("bpe_nfkc", LLAMA | {"additional_special_tokens": []}),
    "llama_extra": ("bpe_identity", LLAMA | {"extra_special_tokens": ["<sep>", "word"], "additional_special_tokens": ["ab"]}),
    "llama_null": ("bpe_runs", LLAMA | {"extra_special_tokens": None}),
    "llama_roles": ("bpe_identity", LLAMA | {"extra_special_tokens": {"image_token": "<sep>"}, "eos_token": "<|im_start|>"}),
    "llama_spaces": ("bpe_identity", LLAMA | {"add_prefix_space": False}),
    "other": ("bpe_identity", {}),
    "other_new": ("bpe_identity", {"legacy": False}),
    "other_old": ("bpe_identity", {"legacy": True}),
    "other_runs": ("bpe_runs", {}),
}


def texts(seed, n):
    rng = random.Random(seed)
    sample = pathlib.Path("tests/golden/tokenizers/sample.txt").read_text(encoding="utf-8").split()
    own = SYMBOLS + CONTROLS + list(ADDED) + ["<s>", "</s>", "<unk>", "[UNK]", "<start_of_turn>", "<0x41>"]
    spaces = [" ", " ", "  ", "   ", "     ", " " * 9, "\u2581", "\u2581\u2581", "\u2581" * 5, "\t", "\n", "\n\n", "\r\n", "\u00a0", "\u3000", "\u200b"]
    chars = list("abzlqu.<>|x1e\u0301\u00e9\ufb01\u00ad\u00a8\u2460\u00bd\u4f60\u597d\uff21\u0e33\U0001f642\ufffd\x01\x0b\x1f\x7f\u0085\u200d")
    made = ["", " ", "\u2581", "  \u2581 ", "<sep>", "lll", "\u00ad", "    if x:", "a<sep>b", "<sep>a", "a <sep> b", "<|im_start|>user"]
    while len(made) < n:
        parts = []
        for _ in range(rng.randint(1, 9)):
            kind = rng.random()
            parts.append(rng.choice(sample) if kind < 0.3 else rng.choice(own) if kind < 0.55 else
                         rng.choice(spaces) if kind < 0.8 else "".join(rng.choices(chars, k=rng.randint(1, 5))))
        made.append("".join(parts))
    return made


def train(name, folder):
    import sentencepiece
    from transformers.convert_slow_tokenizer import import_protobuf

    options = {"minloglevel": 2, "num_threads": 1, "max_sentence_length": 100000, "hard_vocab_limit": False} | MODELS[name]
    ties = options.pop("ties", None)
    if "normalization_rule_tsv" in options:
        (folder / "rules.tsv").write_text(RULES, encoding="ascii")
        options["normalization_rule_tsv"] = str(folder / "rules.tsv")
    lines = pathlib.Path("tests/golden/tokenizers/sample.txt").read_text(encoding="utf-8").splitlines()
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=written, **options)
    proto = import_protobuf().ModelProto.FromString(written.getvalue())
    proto.normalizer_spec.ClearField("normalization_rule_tsv")  # a path
    for piece in proto.pieces:
        if ties and piece.type == 1:
            piece.score = ties * round(piece.score / ties)
    return proto.SerializeToString()


def is_name(model, text, as_text):
    """Between symbols, tokenizers takes the name of a byte or, if special tokens are text, of any piece for the piece. "-" stands for
    the ids of texts with such names."""
    names = ["<0x41>"] + [model.id_to_piece(i) for i in range(model.get_piece_size()) if as_text and (model.is_control(i) or model.is_unknown(i))]
    return any(name in text for name in names)


def encoded(tokenizer, text):
    try:
        return tokenizer.encode(text, add_special_tokens=False).ids
    except BaseException as error:  # of white space within white space: AddedVocabulary bad split
        if type(error).__name__ != "PanicException":
            raise
        return None


def lines_of(lists):
    return "".join("-\n" if ids is None else " ".join(map(str, ids)) + "\n" for ids in lists)


def make(seed, n, folder):
    import sentencepiece
    from transformers import AutoTokenizer

    os.environ["TRANSFORMERS_OFFLINE"] = "1"
    folder.mkdir(parents=True, exist_ok=True)
    all_texts = texts(seed, n)
    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in all_texts), encoding="ascii")
    for name in MODELS:
        path = folder / f"{name}.model"
        path.write_bytes(train(name, folder))
        model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        ids = [model.encode(text) for text in all_texts]
        (folder / f"{name}.ids").write_text(lines_of(ids), encoding="ascii")
        (folder / f"{name}.texts").write_text("".join(json.dumps(model.decode(one)) + "\n" for one in ids), encoding="ascii")
    for name, (model, config) in FOLDERS.items():
        path = folder / name
        path.mkdir(exist_ok=True)
        shutil.copy(folder / f"{model}.model", path / "tokenizer.model")
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(path / "tokenizer.model"))
        size = pieces.get_piece_size()
        plain = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False}
        added = {str(size + i): {"content": text} | plain | flags for i, (text, flags) in enumerate(ADDED.items())}
        if name.endswith("_spaces"):
            added |= {str(size + len(ADDED) + i): {"content": text} | plain | {"special": False} | flags for i, (text, flags) in enumerate(SPACES.items())}
        if name.endswith("_older"):
            (path / "added_tokens.json").write_text(json.dumps({token["content"]: int(i) for i, token in added.items()}) + "\n", encoding="ascii")
        else:
            config = config | {"added_tokens_decoder": added}
        (path / "tokenizer_config.json").write_text(json.dumps(config) + "\n", encoding="ascii")
        tokenizer = AutoTokenizer.from_pretrained(str(path))
        for suffix, as_text in (("ids", True), ("special", False)):
            tokenizer.backend_tokenizer.encode_special_tokens = as_text
            ids = [encoded(tokenizer.backend_tokenizer, text) for text in all_texts]
            if "tokenizer_class" not in config:
                ids = [None if is_name(pieces, text, as_text) else one for text, one in zip(all_texts, ids)]
            (folder / f"{name}.{suffix}").write_text(lines_of(ids), encoding="ascii")
    (folder / "rules.tsv").unlink()


def pack(folder):
    def read(name):
        return (folder / name).read_text(encoding="ascii").splitlines()

    def ids(name):
        return [None if line == "-" else [int(one) for one in line.split()] for line in read(name)]

    packed = {"texts": [json.loads(line)["text"] for line in read("texts.jsonl")], "models": {}, "folders": {}}
    for name in MODELS:
        packed["models"][name] = {"model": (folder / f"{name}.model").read_bytes().hex(), "ids": ids(f"{name}.ids"),
                                  "texts": [json.loads(line) for line in read(f"{name}.texts")]}
    for name, (model, _) in FOLDERS.items():
        packed["folders"][name] = {"model": model, "config": json.loads(read(f"{name}/tokenizer_config.json")[0]),
                                   "ids": ids(f"{name}.ids"), "special": ids(f"{name}.special")}
        if name.endswith("_older"):
            packed["folders"][name]["added"] = json.loads(read(f"{name}/added_tokens.json")[0])
    json.dump(packed, sys.stdout, separators=(",", ":"))


def compare(ours, theirs):
    with open(ours, encoding="ascii") as a, open(theirs, encoding="ascii") as b:
        pairs = list(zip(a.read().splitlines(), b.read().splitlines(), strict=True))
    wrong = [(i, one, other) for i, (one, other) in enumerate(pairs) if other not in (one, "-")]
    for i, one, other in wrong[:10]:
        print(f"text {i}: {one} instead of {other}")
    sys.exit(1 if wrong else 0)


def main():
    try:
        if sys.argv[1:2] == ["make"] and len(sys.argv) == 5:
            make(int(sys.argv[2]), int(sys.argv[3]), pathlib.Path(sys.argv[4]))
        elif sys.argv[1:2] == ["pack"] and len(sys.argv) == 3:
            pack(pathlib.Path(sys.argv[2]))
        elif sys.argv[1:2] == ["compare"] and len(sys.argv) == 4:
            compare(sys.argv[2], sys.argv[3])
        else:
            sys.exit(__doc__)
    except ImportError as missing:
        print(missing, file=sys.stderr)
        sys.exit(77)


if __name__ == "__main__":
    main()
