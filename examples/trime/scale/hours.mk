# Two cores for some hours: all of WikiText-2, eight times through it; the ablations, as in the paper, of a smaller model, four times
# through it; otherwise as SCALE=small.
include scale/small.mk
lines.train = 100000000
lines.valid = 100000000
lines.test = 100000000
common = --arch transformer --layers 2 --d-model 192 --heads 4 --positions sinusoidal --activation relu --init fairseq --lr 2e-3 \
  --warmup 0.05 --schedule cosine --dropout 0.25 --segment 128 --batch 16 --epochs 8 --valid-every 1020 --checkpoint-every 500 --seed $(seed)
smaller = $(common) --d-model 96 --dropout 0.1 --epochs 4
model.small = $(smaller) --cutoffs 4000,16000 --div-val 4
model.medium = $(smaller) --cutoffs 4000,16000 --div-val 1 --segment 32 --batch 64
ablated = small-
tokens = 2048
segments = 32 128 512
order.drops = 0 0.9
order.seeds = 1 2 3
# Four segments a micro-batch, of a third of an article each.
wide = --segment 1024 --batch 4 --valid-every 510
segment.wide = 1024
window.wide = --window 1024 --stride 512
reach.words = 2048
reaches.words = 1024 2048 4096 8192
reaches.medium = 512 1024 2048
lengths = 64 128 256 512 1024 2048 4096
far_lengths = 1024 2048 4096 8192 16384
