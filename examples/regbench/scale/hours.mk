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
table-4.size = 1000
tests = 500
valids = 200
optimiser = --batch 8 --epochs 20 --lr 2e-3 --warmup 0.1 --min-lr 2e-4 --beta2 0.999 --weight-decay 0.1 --clip 1 \
  --checkpoint-every 1000 --keep 1
