# Two cores for two hours: BM25's order of other articles beside a random one, on short articles in segments as long as an article, as in
# the paper: 10,000 articles of an encyclopaedia (DATA=... with train.jsonl and so on: title and text), once through them.
include scale/hours.mk
lines.train = 91000
lines.valid = 1400
lines.test = 1400
types = 32000
kinds = others random
model.small = $(smaller) --epochs 1 --cutoffs 4000,16000 --div-val 4
wide = --segment 512 --batch 8 --valid-every 250
segment.wide = 512
window.wide = --window 512 --stride 256
