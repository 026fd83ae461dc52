# A minute.
lines.train = 2000
lines.valid = 50
lines.test = 20
new.every = 5
bpe = 600
shape = --arch encoder-decoder --layers 1 --d-model 32 --heads 2 --positions sinusoidal --activation relu --memory-key output --seed 1
smoothing = --label-smoothing 0.1
recipe.base = $(shape) --batch-tokens 500 --steps 30 --lr 5e-3 --warmup 5 --average-checkpoints 2 $(smoothing)
recipe.trime = --batch-tokens 500 --steps 10 --lr 1e-3 --warmup 2 --plain-warmup 0 --seed 1
trime_from = base
temperature = 1
beam = --beam 2 --length-penalty 0.6
fill = --index exact
search = --k 8
knn = --combine interpolate --datastore-lambda 0.2 --datastore-temperature 10
joint = --combine joint --joint-temperature 1
