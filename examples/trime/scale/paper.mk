# The published settings for WikiText-103 (DATA), enwik8 (XML) and BooksCorpus (BOOKS), on a GPU. Sizes, optimisers and
# schedules are those of ../shapes; an update has the published number of tokens, on one GPU where the authors used four.
lines.train = 100000000
lines.valid = 100000000
lines.test = 100000000
wiki.train = 100000000
wiki.valid = 100000000
wiki.test = 100000000
books.train = 1000000000000
books.valid = 1000000000000
books.test = 1000000000000
bytes.blocks = 1526
bpe = 32768

shapes = --config ../shapes
common = --checkpoint-every 1000 --keep 2 --seed 1
model.words = $(shapes)/trime-247m.toml $(common)
model.small = $(shapes)/trime-7m.toml $(common)
model.bytes = $(shapes)/trime-enwik8.toml $(common)
model.wiki = $(shapes)/trime-247m.toml $(common) --cutoffs 8000,16000
segment.words = 3072
segment.wiki = 3072
tokens = 12288
window.words = --window 3072 --stride 512 --precision float32
window.bytes = --window 512 --stride 80
window.wiki = $(window.words)
reach = 12288
search = --k 1024 --nprobe 32
fill = --window 3072 --stride 512 --index IVF4096,PQ64
lengths = 1024 2048 3072 6144 12288
ks = 1 8 64 1024
segments = 150 512 1024 3072
drops = 0 0.5 0.9 1
