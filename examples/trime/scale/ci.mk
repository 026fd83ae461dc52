# Seconds a table.
lines.train = 200
lines.valid = 10
lines.test = 20
books.train = 2000
books.valid = 400
books.test = 600
bytes.blocks = 1

common = --arch transformer --layers 2 --heads 2 --positions sinusoidal --activation relu --init fairseq --lr 2e-3 --warmup 0.05 \
  --schedule cosine --batch 8 --steps 24 --valid-every 24 --plain-warmup 0.1 --seed $(seed)
model.words = $(common) --d-model 32 --cutoffs 500,1000 --segment 32
model.small = $(common) --d-model 16 --cutoffs 500,1000 --segment 32
model.bytes = $(common) --d-model 32 --segment 32
model.medium = $(common) --d-model 32 --cutoffs 500,1000 --segment 16
segment.words = 32
tokens = 256
window.words = --window 32 --stride 16
window.bytes = $(window.words)
window.medium = --window 16 --stride 8
reach.words = 256
reach.medium = 128
reach.bytes = 512
search = --k 16
index = exact
lengths = 16 256
far_lengths = 256 512
reaches.words = 128 256
reaches.medium = 64 128
reaches.bytes = 256 512
ks = 1 8 16
segments = 16
drops = 0 0.9
order.drops = 0.9
order.seeds = 1
wide = --segment 64 --batch 4
segment.wide = 64
window.wide = --window 64 --stride 32
# The ablations are of the words models.
ablated =
