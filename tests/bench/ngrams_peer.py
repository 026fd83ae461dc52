"""ngrams_peer.py FOLDER TYPES: tokens a second that tokengrams indexes of FOLDER/text.bin, and distributions a second that it
gives for the suffixes in FOLDER/queries (a line: how many tokens follow, the suffix), into FOLDER/peer. Exit 1 if it counts otherwise."""
import os
import sys
import time

from tokengrams import MemmapIndex

folder, types = sys.argv[1], int(sys.argv[2])
text, table = folder + "/text.bin", folder + "/text.idx"
start = time.perf_counter()
index = MemmapIndex.build(text, table, types)
built = os.path.getsize(text) / 2 / (time.perf_counter() - start)
lines = [[int(word) for word in line.split()] for line in open(folder + "/queries")]
queries = [line[1:] for line in lines]
for _ in range(2):  # the second time counts
    start = time.perf_counter()
    found = [index.count_next(query) for query in queries]
    seconds = time.perf_counter() - start
for (count, *query), counts in zip(lines, found):
    # What follows within a document: the mark is the last type.
    if sum(counts[: types - 1]) != count:
        print(f"{query}: {sum(counts[: types - 1])}, not {count}", file=sys.stderr)
        sys.exit(1)
print(built, len(queries) / seconds, file=open(folder + "/peer", "w"))
