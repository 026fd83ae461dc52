# 3 + 3 layers, d 256: an hour of one core in all.
lines.train = 1000000
lines.valid = 2000
lines.test = 1000
new.every = 5
bpe = 8000
shape = --arch encoder-decoder --layers 3 --d-model 256 --heads 4 --d-ff 1024 --dropout 0.1 --positions sinusoidal --norm pre \
  --activation relu --memory-key output --seed 1
smoothing = --label-smoothing 0.1
recipe.base = $(shape) --batch-tokens 1000 --steps 1000 --lr 1.5e-3 --warmup 100 --schedule cosine --valid-every 250 --log-every 50 \
  $(smoothing)
# Neighbours in the order have any length: half of these tokens is padding.
recipe.trime = --batch-tokens 2000 --steps 200 --lr 5e-4 --warmup 20 --schedule cosine --log-every 20 --plain-warmup 0 --seed 1
trime_from = base
temperature = 1
beam = --beam 4 --length-penalty 0.6
# Few enough entries for codes of 8 bits.
fill.new = --index IVF1024,SQ8
# Exact scores: those of different indexes are not of one scale.
search = --k 16 --nprobe 16 --rescore
knn = --combine interpolate --datastore-lambda 0.6 --datastore-temperature 10
joint = --combine joint --joint-temperature 1
