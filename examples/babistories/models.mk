# Models, $(OUT)/model/NAME: mosaic-N and transformer-N of N layers; twins of the middle transformer with other positions; points of
# the sweep, each of which changes one thing of it. A persistent unit has 3.5 d slots, so that a mosaic's block has the parameters
# of a transformer's.

# $(call recipe,LR,DROPOUT,DECAY,WARMUP,STEPS)
recipe = $(shape) $(batch) --lr $(1) --dropout $(2) --weight-decay $(3) --warmup $(4) --steps $(5)
usual = $(call recipe,$(lr),$(dropout),$(decay),$(warmup),$(steps))
learned = --positions learned --context $(longest)
transformer = --arch transformer $(shape.transformer)
twin = $(transformer) --layers $(middle) $(learned)

$(foreach n,$(depths),$(eval train.mosaic-$(n) = --arch mosaic $(shape.mosaic) --layers $(n) $(usual)))
$(foreach n,$(depths),$(eval train.transformer-$(n) = $(transformer) --layers $(n) $(learned) $(usual)))
twins = rope alibi
$(foreach p,$(twins),$(eval train.$(p) = $(transformer) --layers $(middle) --positions $(p) $(usual)))
# Of one block, whose attention is looked at.
blocks = mosaic-1 transformer-1 $(twins:%=%-1)
$(foreach p,$(twins),$(eval train.$(p)-1 = $(transformer) --layers 1 --positions $(p) $(usual)))
sweep = lr dropout decay warmup half double
train.lr = $(twin) $(call recipe,$(lr.low),$(dropout),$(decay),$(warmup),$(steps))
train.dropout = $(twin) $(call recipe,$(lr),0,$(decay),$(warmup),$(steps)) --attention-dropout 0
train.decay = $(twin) $(call recipe,$(lr),$(dropout),$(decay.low),$(warmup),$(steps))
train.warmup = $(twin) $(call recipe,$(lr),$(dropout),$(decay),$(warmup.short),$(steps))
train.half = $(twin) $(call recipe,$(lr),$(dropout),$(decay),$(warmup),$(steps.half))
train.double = $(twin) $(call recipe,$(lr),$(dropout),$(decay),$(warmup),$(steps.double))
models = $(foreach n,$(depths),mosaic-$(n) transformer-$(n)) $(twins) $(twins:%=%-1) $(sweep)

# A model is complete when its weights are there; rerun the command to resume one that is not. NAME.seen.json and NAME.valid.json:
# its loss on stories it was trained on, and on others.
define model
$(OUT)/model/$(1)/model.safetensors: $(OUT)/train.shard.zst
	@mkdir -p $(OUT)/model
	$(RUN) train $(jobs) --seed $(seed) $(train.$(1)) -o $(OUT)/model/$(1) $$<
$(OUT)/$(1).seen.json $(OUT)/$(1).valid.json: $(OUT)/$(1).%.json: $(OUT)/%.shard.zst $(OUT)/model/$(1)/model.safetensors
	eval-ppl -q $(jobs) -m $(OUT)/model/$(1) --json -o $$@ $$<
	@$$(call record,eval-ppl,$(1)$$(if $$(filter seen,$$*),-training),$(seed),$$@,nats=loss)
endef
$(foreach m,$(models),$(eval $(call model,$(m))))
