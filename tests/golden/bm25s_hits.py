"""bm25s_hits.py K1 B TERMS HITS [QUERIES]: are HITS (bm25-pack --dump hits) what bm25s finds in the units of TERMS (--dump terms)?

With QUERIES, terms too, these ask instead of the units, and HITS are what bm25-search find printed.

Exit 1 and a line if not. Scores may differ by 1e-5 of themselves; hits may change places where their scores do not differ more.
"""

import json
import sys
from itertools import groupby

import bm25s


def terms_in(path):
    with open(path, encoding="utf-8") as file:
        return [line.split() for line in file]


def rows_in(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("{"):
                yield line.split()
                continue
            hit = json.loads(line)
            yield hit["query"], hit["passage"], hit["score"]


def main():
    k1, b, terms, hits, *queries = sys.argv[1:]
    units = terms_in(terms)
    numbers = {}
    ids = [[numbers.setdefault(term, len(numbers)) for term in unit] for unit in units]
    peer = bm25s.BM25(method="lucene", k1=float(k1), b=float(b))
    peer.index(bm25s.tokenization.Tokenized(ids=ids, vocab=numbers), show_progress=False)
    found = {int(q): [(int(r[1]), float(r[2])) for r in of] for q, of in groupby(rows_in(hits), key=lambda r: r[0])}
    asked = terms_in(queries[0]) if queries else units
    for query, unit in enumerate(asked):
        known = [term for term in unit if term in numbers]
        scores = peer.get_scores(known) if known else [0.0] * len(units)
        best = sorted((-s, i) for i, s in enumerate(scores) if s > 0)[:20]
        ours = found.get(query, [])
        if len(ours) != len(best):
            sys.exit(f"query {query}: {len(ours)} hits, not {len(best)}")
        for rank, ((hit, score), (theirs, _)) in enumerate(zip(ours, best)):
            # The score of the hit, and the score that stands at this rank.
            for other in (scores[hit], -theirs):
                if abs(score - other) > 1e-5 * abs(other):
                    sys.exit(f"query {query}, rank {rank}: {score} of unit {hit}, not {other}")
    print(f"{len(asked)} queries")


if __name__ == "__main__":
    main()
