# Two cores without a GPU: a part of the data, and models that have only begun to learn (a quarter of a million tokens).
lines.train = 6000
lines.valid = 400
lines.test = 800
wiki.train = 600
wiki.valid = 40
wiki.test = 40
books.train = 1500000
books.valid = 120000
books.test = 240000
bytes.blocks = 60
bpe = 8192

common = --arch transformer --layers 2 --d-model 128 --heads 4 --positions sinusoidal --activation relu --init fairseq --lr 1e-3 \
  --warmup 0.05 --schedule cosine --dropout 0.1 --segment 128 --batch 8 --steps 250 --valid-every 250 --checkpoint-every 125 --seed 1
model.words = $(common) --cutoffs 4000,16000 --factor 4
model.small = $(common) --cutoffs 4000,16000 --factor 4 --d-model 64
model.bytes = $(common)
model.wiki = $(common)
segment.words = 128
segment.wiki = 128
tokens = 1024
window.words = --window 128 --stride 64
window.bytes = $(window.words)
window.wiki = $(window.words)
reach = 1024
search = --k 1024 --nprobe 32
fill = --window 128 --stride 64
lengths = 128 256 512 1024 2048 4096
ks = 1 8 64 1024
segments = 32 64 128
drops = 0 0.5 0.9 1
