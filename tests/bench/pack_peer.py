"""pack_peer.py TERMS: indexes the units of TERMS (a line of terms each); then for each line of stdin the queries a CPU second of all
units against all, 20 hits each: bm25s with its numba backend in one thread, its search alone.
"""

import sys
import time

import bm25s


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        units = [line.split() for line in file]
    numbers = {}
    ids = [[numbers.setdefault(term, len(numbers)) for term in unit] for unit in units]
    peer = bm25s.BM25(method="lucene", k1=0.9, b=0.4, backend="numba")
    peer.index(bm25s.tokenization.Tokenized(ids=ids, vocab=numbers), show_progress=False)
    queries = [unit for unit in ids if unit]
    peer.retrieve(queries[:10], k=20, show_progress=False)
    for _ in sys.stdin:
        start = time.process_time()
        peer.retrieve(queries, k=20, n_threads=1, show_progress=False)
        print(len(queries) / (time.process_time() - start), flush=True)


if __name__ == "__main__":
    main()
