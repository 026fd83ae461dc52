# Seconds a table.
lines.train = 500
lines.valid = 80
lines.test = 80
wiki.train = 120
wiki.valid = 12
wiki.test = 12
books.train = 60000
books.valid = 12000
books.test = 12000
bytes.blocks = 6
bpe = 512

common = --arch transformer --layers 2 --heads 2 --positions sinusoidal --activation relu --init fairseq --lr 2e-3 --warmup 0.05 \
  --schedule cosine --batch 8 --steps 24 --valid-every 24 --plain-warmup 0.1 --seed 1
model.words = $(common) --d-model 32 --cutoffs 1000,3000 --segment 32
model.small = $(common) --d-model 16 --cutoffs 1000,3000 --segment 32
model.bytes = $(common) --d-model 32 --segment 32
model.wiki = $(common) --d-model 32 --segment 32
segment.words = 32
segment.wiki = 32
tokens = 256
window.words = --window 32 --stride 16
window.bytes = $(window.words)
window.wiki = $(window.words)
reach = 256
search = --k 64
fill = --window 32 --stride 16 --index exact
lengths = 64 256
ks = 1 8 64
segments = 16 32
drops = 0 0.9
