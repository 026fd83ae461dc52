# Two cores: sequences as published, few of them; ten epochs; see small.md.
shape =
sizes = 50 100 300
middle = 100
table-4.size = 100
seeds = 1 2 3
tests = 100
valids = 100
optimiser = --batch 4 --epochs 10 --lr 2e-3 --warmup 0.1 --min-lr 2e-4 --beta2 0.999 --weight-decay 0.1
all.models = --d-model 64 --heads 2 --layers 2 --dropout 0
$(foreach a,$(archs),$(eval shape.$(a) = $$(all.models)))
# As many parameters as the others: two memories beside each other, and gated networks of half the width.
shape.mosaic2 = $(all.models) --d-ff 128
