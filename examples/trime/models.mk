# Models, $(OUT)/model/NAME: of set.NAME, trained with train.NAME. Stores, $(OUT)/store/NAME.

# Whose p is that of train's default is the ext model itself.
dropped = $(filter-out 0.9,$(drops))
dropping = $(if $(filter 0.9,$(1)),$(ablated)ext,drop-$(1))
# Orders of the text: BM25's, BM25's without hits of a segment's own articles, random. wide: of few long segments (the paper's are about
# as long as an article). One that kinds may name besides: stopped, others without gradient into the memories.
kinds ?= bm25 others random
order_of.stopped = others
flags_of.stopped = --memory-gradient off
shapes_ordered = order $(if $(wide),wide)
of_orders = $(foreach g,$(shapes_ordered),$(foreach k,$(kinds),$(foreach p,$(order.drops),$(foreach s,$(order.seeds),$(g)-$(k)-$(p)-$(s)))))
models = plain local long ext ext-random ext-stopped small-plain small-local small-long small-ext small-ext-random small-ext-stopped \
  medium-plain medium-local medium-long bytes-plain bytes-local bytes-long \
  $(foreach l,$(segments),segment-plain-$(l) segment-local-$(l)) $(dropped:%=drop-%) $(of_orders) reach-wide reach-narrow

$(foreach m,$(models),$(eval set.$(m) = words))
$(foreach m,bytes-plain bytes-local bytes-long,$(eval set.$(m) = bytes))
# Whose shape and windows: NAME's own, else its set's.
$(foreach m,medium-plain medium-local medium-long,$(eval kind.$(m) = medium))

# The shape and recipe of each kind of models come from scale/$(SCALE).mk; ablated is small- where the ablations are of the small one.
ext = --memory local,ext --order $(OUT)/data/words.bm25.shard.zst
random = --memory local,ext --order $(OUT)/data/words.random.shard.zst
# $(call recipes,PREFIX,OPTIONS): of one shape, in each way.
define recipes
train.$(1)plain = $(2) --memory none
train.$(1)local = $(2) --memory local
train.$(1)long = $(2) --memory long
train.$(1)ext = $(2) $(ext)
train.$(1)ext-random = $(2) $(random)
train.$(1)ext-stopped = $(2) $(ext) --memory-gradient off
endef
$(eval $(call recipes,,$(model.words)))
$(eval $(call recipes,small-,$(model.small)))
$(eval $(call recipes,medium-,$(model.medium)))
$(eval $(call recipes,bytes-,$(model.bytes)))
$(foreach p,$(dropped),$(eval train.drop-$(p) = $(train.$(ablated)ext) --drop-local $(p)))
# As many tokens a micro-batch whatever the segment, and windows of it at test.
model.ablated = $(if $(ablated),$(model.small),$(model.words))
of_length = --segment $(1) --batch $(shell expr $(tokens) / $(1))
$(foreach l,$(segments),$(eval train.segment-plain-$(l) = $(model.ablated) --memory none $(call of_length,$(l))))
$(foreach l,$(segments),$(eval train.segment-local-$(l) = $(model.ablated) --memory local $(call of_length,$(l))))
$(foreach l,$(segments),$(foreach k,plain local,$(eval window.segment-$(k)-$(l) = --window $(l) --stride $(shell expr $(l) / 2))))

# Trained with long memories of four times as many tokens, beside as many tokens a step of four micro-batches.
train.reach-wide = $(model.ablated) --memory long --batch $(shell expr 4 \* $(tokens) / $(segment.words))
train.reach-narrow = $(model.ablated) --memory long $(call of_length,$(segment.words)) --accumulate 4

# The ablations' model with each order, p and seed.
in_order = --memory local,ext --order $(OUT)/data/$(2)$(or $(order_of.$(1)),$(1)).shard.zst $(flags_of.$(1))
define ordered
train.order-$(1)-$(2)-$(3) = $(model.ablated) $(call in_order,$(1),words.) --drop-local $(2) --seed $(3)
train.wide-$(1)-$(2)-$(3) = $(model.ablated) $(wide) $(call in_order,$(1),words.wide-) --drop-local $(2) --seed $(3)
window.wide-$(1)-$(2)-$(3) = $(window.wide)
endef
$(foreach k,$(kinds),$(foreach p,$(order.drops),$(foreach s,$(order.seeds),$(eval $(call ordered,$(k),$(p),$(s))))))

# The windows of a model, at test and for its stores: its own, its kind's, or its set's.
window_of = $(or $(window.$(1)),$(window.$(kind.$(1))),$(window.$(set.$(1))))

# The best weights of a model for a store are those that do best with one: of the first half of the validation text, for the second.
halves = $(OUT)/data/words.known.shard.zst $(OUT)/data/words.asked.shard.zst
with_store = --valid-better lower --valid-command './loss-with-store {} $(halves) $(call window_of,$(1)) $(jobs)'

# What a model needs besides its data: the order, and the halves.
define needs_of
$(filter $(OUT)/data/%.shard.zst,$(train.$(1))) $(if $(findstring ext,$(train.$(1))),$(halves))
endef

define model
$(OUT)/model/$(1)/model.safetensors: $(OUT)/data/$(set.$(1)).train.shard.zst $(OUT)/data/$(set.$(1)).valid.shard.zst $(call needs_of,$(1))
	@mkdir -p $(OUT)/model
	train $(jobs) $(train.$(1)) --valid $(OUT)/data/$(set.$(1)).valid.shard.zst $(if $(findstring ext,$(train.$(1))),$(with_store)) -o $(OUT)/model/$(1) $$<
endef
$(foreach m,$(models),$(eval $(call model,$(m))))

$(OUT)/data/%.bm25.shard.zst: $(OUT)/data/%.train.shard.zst
	bm25-pack $(jobs) --segment $(segment.$*) $< -o $@
$(OUT)/data/%.others.shard.zst: $(OUT)/data/%.train.shard.zst
	bm25-pack $(jobs) --segment $(segment.$*) --other-documents $< -o $@
$(OUT)/data/%.random.shard.zst: $(OUT)/data/%.train.shard.zst
	bm25-pack $(jobs) --segment $(segment.$*) --method random $< -o $@
pack.others = --other-documents
pack.random = --method random
$(kinds:%=$(OUT)/data/words.wide-%.shard.zst): $(OUT)/data/words.wide-%.shard.zst: $(OUT)/data/words.train.shard.zst
	bm25-pack $(jobs) --segment $(segment.wide) $(pack.$*) $< -o $@

# Stores: of the model's own training data; NAME-books, of the novels. The metric is the model's: squared distances of one trained
# without memory (kNN-LM's), products of TRIME's.
stores = plain local long ext ext-random ext-stopped small-plain small-local small-long small-ext small-ext-random small-ext-stopped \
  $(dropped:%=drop-%) $(of_orders)
fill_of = $(call window_of,$(1)) $(index:%=--index %)
define store
$(OUT)/store/$(1)/store.json: $(OUT)/model/$(2)/model.safetensors $(OUT)/data/$(3).train.shard.zst
	@mkdir -p $(OUT)/store
	build-datastore $(jobs) -m $(OUT)/model/$(2) $(call fill_of,$(2)) $(OUT)/data/$(3).train.shard.zst -o $(OUT)/store/$(1)
endef
$(foreach s,$(stores),$(eval $(call store,$(s),$(s),$(set.$(s)))))
$(foreach s,plain ext,$(eval $(call store,$(s)-books,$(s),books)))
