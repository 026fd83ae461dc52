# The published data and recipe: 200 epochs, batches of 32. One point of the sweep; array.sbatch walks over all of them with LAYERS,
# HEADS, D_MODEL and DECAY, each with an OUT of its own; epochs need none, since a model is that of the best of its 200.
LAYERS ?= 2
HEADS ?= 8
D_MODEL ?= 128
DECAY ?= 0.1
shape =
sizes = 100 1000 2500 5000 10000 20000 40000
middle = 2500
table-4.size = 100
seeds = 1 2 3
tests = 1000
valids = 500
chooses = $(sizes)
batch = 32
optimiser = --batch $(batch) --epochs 200 --warmup 0.1 --beta2 0.999 --weight-decay $(DECAY) --clip 1 --checkpoint-every 1000 --keep 1
all.models = --d-model $(D_MODEL) --heads $(HEADS) --layers $(LAYERS)
# Rate and dropouts of RegBench's sweeps: 0.1 of embeddings and of a transformer's attention. They left the residual stream alone, of which
# --dropout drops as much.
sweeps = $(all.models) --lr 2.5e-4 --min-lr 2.5e-5 --dropout 0.1
$(foreach a,$(archs),$(eval shape.$(a) = $(sweeps)))
shape.transformer = $(sweeps) --attention-dropout 0.1
# Rate, dropouts and first values of the authors' mosaic. For mosaic2 none are published here: it has a mosaic's rate and dropouts.
authors = $(all.models) --lr 5e-4 --min-lr 5e-5 --dropout 0.05 --attention-dropout 0.05
shape.mosaic = $(authors) --init fan-in --no-scale-embedding
# As many parameters as the others: two memories beside each other, and gated networks of half the width.
shape.mosaic2 = $(authors) --d-ff $(shell expr 2 \* $(D_MODEL)) --init depth --no-scale-embedding
