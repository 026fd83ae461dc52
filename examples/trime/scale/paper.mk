# The published settings for WikiText-103 (DATA), enwik8 (XML) and BooksCorpus (BOOKS, words), on a GPU. Sizes, optimisers and
# schedules are those of ../shapes; an update has the published number of tokens, on one GPU where the authors used four.
lines.train = 100000000
lines.valid = 100000000
lines.test = 100000000
books.train = 100000000
books.valid = 250000
books.test = 250000
bytes.blocks = 1526

shapes = --config ../shapes
common = --checkpoint-every 1000 --keep 2 --seed $(seed)
model.words = $(shapes)/trime-247m.toml $(common)
model.small = $(shapes)/trime-7m.toml $(common)
model.bytes = $(shapes)/trime-enwik8.toml $(common)
model.medium = $(shapes)/trime-150m.toml $(common)
segment.words = 3072
tokens = 12288
window.words = --window 3072 --stride 512 --dtype float32
window.bytes = --window 512 --stride 80
window.medium = --window 150 --stride 64 --dtype float32
# As the authors chose them on the validation texts; the table reach tries what is around them.
reach.words = 12288
reach.medium = 15000
reach.bytes = 24576
search = --k 1024 --nprobe 32
index = IVF4096,PQ64
reaches.words = 6144 12288 24576
reaches.medium = 7500 15000 30000
reaches.bytes = 12288 24576 49152
lengths = 1024 2048 3072 6144 12288
far_lengths = 3072 6144 12288 24576
ks = 1 8 64 1024
segments = 150 512 1024 3072
drops = 0 0.5 0.9 1
order.drops = 0 0.9
order.seeds = 1 2 3
wide =
# The ablations are of the 7M model.
ablated = small-
