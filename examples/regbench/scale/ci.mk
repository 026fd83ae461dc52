# Tiny models: a minute in all, to see that everything runs.
archs = transformer mosaic mosaic2 gla delta lstm rwkv4 hyena
shape = --least-words 3 --most-words 4 --longest-word 8
sizes = 16
middle = 16
table-4.size = 16
seeds = 1
tests = 20
valids = 10
chooses = $(sizes)
batch = 8
optimiser = --batch $(batch) --epochs 2 --lr 2e-3
all.models = --d-model 16 --heads 2 --layers 1 --dropout 0
$(foreach a,$(archs),$(eval shape.$(a) = $(all.models)))
# As many parameters as the others: two memories beside each other, and gated networks of half the width.
shape.mosaic2 = $(all.models) --d-ff 32
