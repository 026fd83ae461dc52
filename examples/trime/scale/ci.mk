# Seconds a table.
lines.train = 500
lines.valid = 80
lines.test = 80
books.train = 6000
books.valid = 1500
books.test = 1500
bytes.blocks = 6

common = --arch transformer --layers 2 --heads 2 --positions sinusoidal --activation relu --init fairseq --lr 2e-3 --warmup 0.05 \
  --schedule cosine --batch 8 --steps 24 --valid-every 24 --plain-warmup 0.1 --seed 1
model.words = $(common) --d-model 32 --cutoffs 500,2000 --segment 32
model.small = $(common) --d-model 16 --cutoffs 500,2000 --segment 32
model.bytes = $(common) --d-model 32 --segment 32
model.medium = $(common) --d-model 32 --cutoffs 500,2000 --segment 16
segment.words = 32
tokens = 256
window.words = --window 32 --stride 16
window.bytes = $(window.words)
window.medium = --window 16 --stride 8
reach.words = 256
reach.medium = 128
reach.bytes = 512
search = --k 64
index = exact
lengths = 16 256
reaches.words = 128 256
reaches.medium = 64 128
reaches.bytes = 256 512
ks = 1 8 64
segments = 16 32
drops = 0 0.9
order.drops = 0.9
order.seeds = 1
wide = --segment 64 --batch 4
segment.wide = 64
window.wide = --window 64 --stride 32
# The ablations are of the words models.
ablated =
