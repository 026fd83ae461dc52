#!/usr/bin/env python3
"""coarse.py: writes coarse.json: unigram models with a piece of a very low score, below which is the unknown one's, texts, and the ids of
sentencepiece, whose sums of scores round coarsely after such a piece. Needs sentencepiece 0.2.3 and transformers."""
import json
import os
import random

import sentencepiece
from transformers.convert_slow_tokenizer import import_protobuf

MARK = "\u2581"
rng = random.Random(4)
words = ["".join(rng.choices("abc", k=rng.randint(1, 5))) for _ in range(40)]
texts = [" ".join(rng.choice(words + ["z", "\u00e9", "bza"]) for _ in range(rng.randint(1, 9))) for _ in range(60)]
models = []
for low in (-3e4, -7e4, -1e6, -1e8, -1e20, -3e38):
    proto = import_protobuf().ModelProto()
    single = {letter: -rng.uniform(3, 6) for letter in "abc" + MARK}
    scores = {"z": low, **single}
    for word in words[:25]:
        word = rng.choice([MARK, ""]) + word
        scores.setdefault(word, sum(single[letter] for letter in word) + rng.choice([0, 0, 0.01, -0.01, 0.3]))
    for text, kind, score in [("<unk>", 2, 0)] + [(text, 1, score) for text, score in scores.items()]:
        piece = proto.pieces.add()
        piece.piece, piece.type, piece.score = text, kind, score
    proto.trainer_spec.model_type = 1
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    model = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    models.append({"model": proto.SerializeToString().hex(), "ids": [model.encode(text) for text in texts]})
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "coarse.json"), "w", encoding="utf-8") as file:
    json.dump({"words": " ".join(words), "texts": texts, "models": models}, file, ensure_ascii=False)
    file.write("\n")
