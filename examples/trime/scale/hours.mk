# Two cores for some hours: all of WikiText-2, eight times through it; otherwise as SCALE=small.
include scale/small.mk
lines.train = 100000000
lines.valid = 100000000
lines.test = 100000000
common = --arch transformer --layers 2 --d-model 192 --heads 4 --positions sinusoidal --activation relu --init fairseq --lr 2e-3 \
  --warmup 0.05 --schedule cosine --dropout 0.25 --segment 128 --batch 16 --epochs 8 --valid-every 1020 --checkpoint-every 500 --seed 1
reach.words = 2048
lengths = 128 256 512 1024 2048 4096 8192
