"""Counts of n-grams as they were counted before suffix arrays: interpolated Kneser-Ney with three discounts (Chen & Goodman
1999), and KenLM to read it.

kneser_ney.py estimate N TEXT ARPA            a model of N-grams of the lines of TEXT, whose words are parted by spaces; of
                                              an array of tokens, X.npy (shard export), as one line
kneser_ney.py mix ARPA VALID TEST             prints TEST.tsv (a file of eval-ppl --per-token) with the losses of the mixture of
                                              the model's probabilities with KenLM's. The weight is the best of fifty on
                                              VALID.tsv, and goes to stderr. VALID.npy and TEST.npy have the tokens

Nothing is predicted of a document's end. mix needs Python's kenlm and numpy.
"""

import math
import sys
from collections import Counter, defaultdict


def lines_of(path):
    if path.endswith(".npy"):
        import numpy

        yield [str(token) for token in numpy.load(path)]
        return
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield line.split()


def counts_of(order, path):
    """Counts of the highest order and, below it, of how many different words stand before: a Counter for each length."""
    highest, begun = Counter(), [Counter() for _ in range(order)]
    vocabulary = set()
    for line in lines_of(path):
        words = ["<s>"] + line
        if len(words) == 1:
            continue
        words.append("</s>")
        vocabulary.update(words)
        for end in range(1, len(words)):
            for n in range(1, order + 1):
                start = end - n + 1
                if start < 0:
                    break
                gram = tuple(words[start : end + 1])
                if n == order:
                    highest[gram] += 1
                elif start == 0:  # nothing can stand before a beginning: its count is its own
                    begun[n][gram] += 1
    tables = [Counter() for _ in range(order + 1)]
    tables[order] = highest
    for n in range(order - 1, 0, -1):
        # Different words before; those of shorter ones that begin a document come too.
        longer = list(tables[n + 1])
        for gram in longer:
            tables[n][gram[1:]] += 1
        for gram, count in begun[n].items():
            tables[n][gram] = count
    return tables, vocabulary


def discounts_of(table):
    of = Counter(min(count, 5) for count in table.values())
    if not (of[1] and of[2] and of[3] and of[4]):
        return (0.5, 0.75, 0.9)  # too few words to estimate them
    y = of[1] / (of[1] + 2 * of[2])
    found = (1 - 2 * y * of[2] / of[1], 2 - 3 * y * of[3] / of[2], 3 - 4 * y * of[4] / of[3])
    return tuple(min(max(d, 0.01), i + 0.99) for i, d in enumerate(found))


def estimate(order, text, arpa):
    tables, vocabulary = counts_of(order, text)
    vocabulary.discard("<s>")
    floor = 1 / (len(vocabulary) + 1)  # of the unknown word too
    probabilities, backoffs = [{} for _ in range(order + 1)], [{} for _ in range(order + 1)]
    lower = {}
    for n in range(1, order + 1):
        discounts = discounts_of(tables[n])
        total, taken = defaultdict(int), defaultdict(float)
        for gram, count in tables[n].items():
            total[gram[:-1]] += count
            taken[gram[:-1]] += discounts[min(count, 3) - 1]
        backoffs[n - 1] = {context: taken[context] / total[context] for context in total}
        for gram, count in tables[n].items():
            context = gram[:-1]
            below = lower[gram[1:]] if n > 1 else floor
            probabilities[n][gram] = (count - discounts[min(count, 3) - 1] + taken[context] * below) / total[context]
        lower = probabilities[n]
    probabilities[1][("<unk>",)] = backoffs[0][()] * floor
    probabilities[1][("<s>",)] = 1e-99
    with open(arpa, "w", encoding="utf-8") as file:
        print("\\data\\", file=file)
        for n in range(1, order + 1):
            print(f"ngram {n}={len(probabilities[n])}", file=file)
        for n in range(1, order + 1):
            print(f"\n\\{n}-grams:", file=file)
            for gram, p in probabilities[n].items():
                backoff = backoffs[n].get(gram) if n < order else None
                end = "" if n == order else f"\t{math.log10(backoff) if backoff else 0:.7g}"
                print(f"{math.log10(p):.7g}\t{' '.join(gram)}{end}", file=file)
        print("\n\\end\\", file=file)


def table(path):
    with open(path, encoding="utf-8") as file:
        lines = (line.rstrip("\n").split("\t") for line in file if not line.startswith("#"))
        names = next(lines)
        return names, [dict(zip(names, line)) for line in lines]


def losses_of(arpa, name):
    """The rows of NAME.tsv, and what KenLM gives their tokens, in nats. Documents follow one another."""
    import kenlm
    import numpy

    config = kenlm.Config()
    config.show_progress, config.arpa_complain = False, kenlm.ARPALoadComplain.NONE
    model = kenlm.Model(arpa, config)
    tokens = numpy.load(name + ".npy")
    names, rows = table(name + ".tsv")
    nats, at, document = {}, 0, None
    state, after = kenlm.State(), kenlm.State()
    for row in rows:
        if row["document"] != document:
            model.BeginSentenceWrite(state)
            document = row["document"]
        for at in range(at, int(row["position"]) + 1):
            nats[at] = -model.BaseScore(state, str(tokens[at]), after) * math.log(10)
            state, after = after, state
        at += 1
    return names, rows, [nats[int(row["position"])] for row in rows]


def mixed(row, theirs, weight):
    return -math.log((1 - weight) * math.exp(-float(row["nats"])) + weight * math.exp(-theirs))


def mix(arpa, valid, test):
    _, rows, theirs = losses_of(arpa, valid)
    weights = [i / 50 for i in range(50)]
    weight = min(weights, key=lambda each: sum(mixed(row, b, each) for row, b in zip(rows, theirs)))
    print(f"kneser_ney.py: the weight of KenLM is {weight}", file=sys.stderr)
    names, rows, theirs = losses_of(arpa, test)
    print(*names, sep="\t")
    for row, b in zip(rows, theirs):
        row["nats"] = f"{mixed(row, b, weight):.7g}"
        print(*(row[name] for name in names), sep="\t")


if __name__ == "__main__":
    if sys.argv[1] == "estimate":
        estimate(int(sys.argv[2]), *sys.argv[3:])
    else:
        mix(*sys.argv[2:])
