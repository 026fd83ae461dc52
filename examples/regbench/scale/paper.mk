# The published data and recipe: 200 epochs, batches of 32. One point of the sweep; array.sbatch walks over all of them with LAYERS,
# HEADS, D_MODEL, DECAY and EPOCHS, each with an OUT of its own.
LAYERS ?= 2
HEADS ?= 8
D_MODEL ?= 128
DECAY ?= 0.1
EPOCHS ?= 200
shape =
sizes = 100 1000 2500 5000 10000 20000 40000
middle = 2500
table-4.size = 100
seeds = 1 2 3
tests = 1000
valids = 500
optimiser = --batch 32 --epochs $(EPOCHS) --lr 5e-4 --warmup 0.1 --min-lr 5e-5 --beta2 0.999 --weight-decay $(DECAY) --clip 1 \
  --checkpoint-every 1000 --keep 1
all.models = --d-model $(D_MODEL) --heads $(HEADS) --layers $(LAYERS) --dropout 0.05 --attention-dropout 0.05
$(foreach a,$(archs),$(eval shape.$(a) = $(all.models)))
# The first values that the authors' mosaic has.
shape.mosaic = $(all.models) --init fan-in --no-scale-embedding
# As many parameters as the others: two memories beside each other, and gated networks of half the width.
shape.mosaic2 = $(all.models) --d-ff $(shell expr 2 \* $(D_MODEL)) --init depth --no-scale-embedding
