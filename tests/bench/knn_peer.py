"""knn_peer.py ROWS THREADS: "batch single", ms a query of faiss's flat index, as knn_bench.cpp asks it."""
import sys
import time

import faiss
import numpy as np

rows, threads = int(sys.argv[1]), int(sys.argv[2])
faiss.omp_set_num_threads(threads)
rng = np.random.default_rng(1)
keys = rng.standard_normal((rows, 256), dtype=np.float32)
queries = rng.standard_normal((1000, 256), dtype=np.float32)
index = faiss.IndexFlatIP(256)
index.add(keys)
index.search(queries[:1], 1024)


def batch():
    start = time.perf_counter()
    index.search(queries, 1024)
    return (time.perf_counter() - start) * 1e3 / 1000


def single():
    start = time.perf_counter()
    for i in range(10):
        index.search(queries[i : i + 1], 1024)
    return (time.perf_counter() - start) * 1e3 / 10


print(min(batch() for _ in range(2)), min(single() for _ in range(2)))
