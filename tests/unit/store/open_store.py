"""open_store.py STORE: read a store with numpy and faiss alone, and hold its parts to each other."""
import json
import os
import sys

import faiss
import numpy as np

folder = sys.argv[1]
with open(os.path.join(folder, "store.json")) as file:
    store = json.load(file)
path = lambda part: os.path.join(folder, store["files"][part])
keys = np.load(path("keys"), mmap_mode="r")
values = np.load(path("values"))
documents = np.load(path("documents"))
index = faiss.read_index(path("index"))

rows, width = store["rows"], store["width"]
assert keys.shape == (rows, width) and keys.dtype == np.float16, (keys.shape, keys.dtype)
assert values.shape == (rows,) and values.dtype == np.int32, (values.shape, values.dtype)
assert documents.shape == (store["documents"],) and documents.dtype == np.int64, documents
assert documents[0] == 0 and (np.diff(documents) >= 0).all() and documents[-1] <= rows, documents
assert 0 <= values.min() and values.max() < store["vocabulary"]
assert index.ntotal == rows and index.d == width, (index.ntotal, index.d)
assert (index.metric_type == faiss.METRIC_INNER_PRODUCT) == (store["metric"] == "ip")

# The index is of these keys: it finds most of what their products find.
ivf = faiss.try_extract_index_ivf(index)
if ivf is not None:
    ivf.nprobe = 4
queries = np.array(keys[:20], dtype=np.float32)
_, found = index.search(queries, 50)
nearest = np.argsort(-(queries @ np.array(keys, dtype=np.float32).T), axis=1)[:, :50]
recall = np.mean([len(set(a) & set(b)) / 50 for a, b in zip(found, nearest)])
assert recall > 0.4, recall
