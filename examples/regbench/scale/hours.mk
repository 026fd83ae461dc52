# Two cores for some hours: the published axis as far down as it goes and below, twenty epochs; otherwise as SCALE=small. LAYERS,
# HEADS and D_MODEL are another point of the paper's sweep; give it an OUT of its own.
include scale/small.mk
LAYERS ?= 2
HEADS ?= 2
D_MODEL ?= 64
all.models = --d-model $(D_MODEL) --heads $(HEADS) --layers $(LAYERS) --dropout 0
shape.mosaic2 = $(all.models) --d-ff $(shell expr 2 \* $(D_MODEL))
sizes = 1000 2500 5000
middle = 1000
# As published: 100 automata, the best of 200 epochs on other sequences of theirs.
table-4.size = 100
chooses = 100
every = 10
batch = 8
tests = 500
valids = 200
rates = --batch $(batch) --lr 2e-3 --warmup 0.1 --min-lr 2e-4 --beta2 0.999 --weight-decay 0.1 --clip 1 --checkpoint-every 1000 --keep 1
optimiser = --epochs 20 $(rates)
optimiser.100 = --epochs 200 $(rates)
