# Two cores without a GPU: a part of the data, and models that have only begun to learn (a quarter of a million tokens).
lines.train = 6000
lines.valid = 400
lines.test = 800
books.train = 300000
books.valid = 24000
books.test = 48000
bytes.blocks = 60

common = --arch transformer --layers 2 --d-model 128 --heads 4 --positions sinusoidal --activation relu --init fairseq --lr 1e-3 \
  --warmup 0.05 --schedule cosine --dropout 0.1 --segment 128 --batch 8 --steps 250 --valid-every 250 --checkpoint-every 125 --seed $(seed)
model.words = $(common) --cutoffs 4000,16000 --div-val 4
model.small = $(common) --cutoffs 4000,16000 --div-val 4 --d-model 64
model.bytes = $(common)
model.medium = $(common) --cutoffs 4000,16000 --div-val 1 --segment 32 --batch 32
segment.words = 128
tokens = 1024
window.words = --window 128 --stride 64
window.bytes = $(window.words)
window.medium = --window 32 --stride 16
reach.words = 1024
reach.medium = 1024
reach.bytes = 2048
search = --k 1024 --nprobe 32
index =
reaches.words = 512 1024 2048
reaches.medium = 512 1024 2048
reaches.bytes = 1024 2048 4096
lengths = 128 256 512 1024 2048 4096
far_lengths = 1024 4096 16384
ks = 1 8 64 1024
segments = 32 64 128
drops = 0 0.5 0.9 1
order.drops = 0.9
order.seeds = 1
wide =
# The ablations are of the words models, which the main table has anyway.
ablated =
