"""A tiny GPT-2 of bytes behind passages, in a plain loop.

hf_retrieve.py make FOLDER            writes a model at random, and texts: FOLDER/train, documents by lines, and FOLDER/test
hf_retrieve.py loss FOLDER "PASSAGE WINDOW EVERY QUERY TOKENS MIX TEMPERATURE"...
                                      prints for each the mean loss of the test, in nats, but for its first byte
Exit 77 and a reason where transformers is missing.
"""

import math
import os
import random
import re
import sys

from peer_modules import modules_or_skip

with modules_or_skip():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel


def words(n):
    """Such as no stemmer and no list of stop words knows."""
    return " ".join(f"q{int(60 * random.random() ** 2)}" for _ in range(n))


def make(folder):
    torch.manual_seed(7)
    random.seed(3)
    config = GPT2Config(vocab_size=256, n_positions=64, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3)
    GPT2LMHeadModel(config).save_pretrained(os.path.join(folder, "model"))
    with open(os.path.join(folder, "train"), "w") as file:
        for _ in range(20):
            file.write(words(random.randrange(5, 40)) + "\n")
    with open(os.path.join(folder, "test"), "w") as file:
        file.write(words(60))


def terms(text):
    return re.findall("[a-z0-9]+", text)


def best(passages, lists, query, most, k1=0.9, b=0.4):
    """[(score, passage)] of the best passages, whose terms are lists, by BM25 with Lucene's idf; of equal scores the first."""
    average = sum(map(len, lists)) / len(lists)
    scores = []
    asked = [(term, sum(term in other for other in lists)) for term in terms(query)]
    for number, own in enumerate(lists):
        score = 0
        for term, n in asked:
            f = own.count(term)
            score += math.log(1 + (len(lists) - n + 0.5) / (n + 0.5)) * f / (f + k1 * (1 - b + b * len(own) / average))
        if score > 0:
            scores.append((-score, number))
    # As floats have them: equal scores are equal whatever the order of the sum.
    scores.sort(key=lambda pair: (round(pair[0], 5), pair[1]))
    return [(-score, passages[number]) for score, number in scores[:most]]


def loss(folder, passage, window, every, query, most, mix, temperature):
    model = GPT2LMHeadModel.from_pretrained(os.path.join(folder, "model")).eval()
    with open(os.path.join(folder, "train")) as file:
        documents = file.read().splitlines()
    passages = [line[i : i + passage] for line in documents for i in range(0, len(line), passage)]
    lists = [terms(passage) for passage in passages]
    with open(os.path.join(folder, "test")) as file:
        text = file.read()
    total = 0
    for start in range(1, len(text), every):
        end = min(start + every, len(text))
        found = best(passages, lists, text[max(0, start - query) : start], mix) or [(0, "")]
        fronts = [front[:most] for _, front in found]
        weights = torch.softmax(torch.tensor([score for score, _ in found], dtype=torch.float64) / temperature, 0)
        room = window - max(map(len, fronts))
        fed = text[max(0, end - 1 - room) : end - 1]
        p = 0
        for weight, front in zip(weights, fronts):
            with torch.no_grad():
                logits = model(torch.tensor([list((front + fed).encode())])).logits[0].double()
            rows = torch.log_softmax(logits, 1)[-(end - start) :]
            p += weight * rows.gather(1, torch.tensor(list(text[start:end].encode()))[:, None])[:, 0].exp()
        total -= p.log().sum().item()
    return total / (len(text) - 1)


def main(command, folder, *rest):
    if command == "make":
        make(folder)
    elif command == "loss":
        for setting in rest:
            *numbers, temperature = setting.split()
            print(repr(loss(folder, *map(int, numbers), float(temperature))))


if __name__ == "__main__":
    main(*sys.argv[1:])
