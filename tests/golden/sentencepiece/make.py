#!/usr/bin/env python3
"""make.py: small models of the sentencepiece package and the ids that it gives for some texts, beside this file.

Run in the root of the source tree, with sentencepiece installed."""
import io
import json
import pathlib

import sentencepiece

here = pathlib.Path(__file__).parent
lines = pathlib.Path("tests/golden/tokenizers/sample.txt").read_text(encoding="utf-8").splitlines()
rules = here / "rules.tsv"
# Characters, by their numbers: tab and newline are spaces, e with an acute in two characters is one, U+FB01 is f and i, U+00AD goes.
rules.write_text("9\t20\nA\t20\n65 301\tE9\nFB01\t66 69\nAD\t\n", encoding="ascii")

common = {"minloglevel": 2, "num_threads": 1, "max_sentence_length": 100000, "hard_vocab_limit": False}
models = {
    # As Llama's: bytes for unknown characters, spaces as they are.
    "bpe": {"model_type": "bpe", "vocab_size": 500, "byte_fallback": True, "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False, "user_defined_symbols": ["<sep>"]},
    # Spaces are put in order, characters are replaced, what is unknown is <unk>.
    "unigram": {"model_type": "unigram", "vocab_size": 300, "normalization_rule_tsv": str(rules)},
    "unigram_bytes": {"model_type": "unigram", "vocab_size": 500, "byte_fallback": True, "add_dummy_prefix": False,
                      "normalization_rule_name": "identity", "remove_extra_whitespaces": False},
}
texts = [
    "Hello, world!", "", " ", "   three  spaces   inside and out  ", "tab\tand\nnewline", "12345.678 (a+b)*c",
    "the quick brown fox jumps over the lazy dog, and then it rests", "e\u0301tude \u00e9tude", "\ufb01ne soft\u00adhyphen",
    "\u4f60\u597d\u4e16\u754c", "\U0001f642\U0001f642 smile", "x", "\u2581 mark", "a\u00a0b", "AAAAAAAAAA", "unbelievable" * 5,
] + [line for line in lines if line][:40]
ids = {"texts": texts}
for name, options in models.items():
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=written, **common, **options)
    (here / f"{name}.model").write_bytes(written.getvalue())
    model = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    ids[name] = [model.encode(text) for text in texts]
rules.unlink()
(here / "ids.json").write_text(json.dumps(ids) + "\n", encoding="ascii")
