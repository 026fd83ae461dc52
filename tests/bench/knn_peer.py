"""knn_peer.py flat|fp16 ROWS THREADS: "batch single", ms a query of faiss's exact index of 32-bit or 16-bit keys, as
knn_bench.cpp asks it."""

import sys
import time

import faiss
import numpy as np

kind, rows, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
faiss.omp_set_num_threads(threads)
rng = np.random.default_rng(1)
keys = rng.standard_normal((rows, 256), dtype=np.float32)
queries = rng.standard_normal((1000, 256), dtype=np.float32)
if kind == "flat":
    index = faiss.IndexFlatIP(256)
else:
    index = faiss.IndexScalarQuantizer(256, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    index.train(keys[:1000])
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
