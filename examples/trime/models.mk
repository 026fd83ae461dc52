# Models, $(OUT)/model/NAME: of set.NAME, trained with train.NAME. Stores, $(OUT)/store/NAME.

models = plain local long ext ext-random long-stopped small-plain small-local small-long \
  bytes-plain bytes-local bytes-long wiki-plain wiki-long wiki-ext $(segments:%=segment-%) $(drops:%=drop-%)

$(foreach m,$(models),$(eval set.$(m) = words))
$(foreach m,bytes-plain bytes-local bytes-long,$(eval set.$(m) = bytes))
$(foreach m,wiki-plain wiki-long wiki-ext,$(eval set.$(m) = wiki))

# The shape and recipe of each set's models come from scale/$(SCALE).mk.
ext = --memory local,ext
train.plain = $(model.words) --memory none
train.local = $(model.words) --memory local
train.long = $(model.words) --memory long
train.long-stopped = $(train.long) --memory-gradient off
train.ext = $(model.words) $(ext) --order $(OUT)/data/words.bm25.shard.zst
train.ext-random = $(model.words) $(ext) --order $(OUT)/data/words.random.shard.zst
train.small-plain = $(model.small) --memory none
train.small-local = $(model.small) --memory local
train.small-long = $(model.small) --memory long
train.bytes-plain = $(model.bytes) --memory none
train.bytes-local = $(model.bytes) --memory local
train.bytes-long = $(model.bytes) --memory long
train.wiki-plain = $(model.wiki) --memory none
train.wiki-long = $(model.wiki) --memory long
train.wiki-ext = $(model.wiki) $(ext) --order $(OUT)/data/wiki.bm25.shard.zst
$(foreach p,$(drops),$(eval train.drop-$(p) = $(train.ext) --drop-local $(p)))
# As many tokens a micro-batch whatever the segment.
$(foreach l,$(segments),$(eval train.segment-$(l) = $(model.words) --memory long --segment $(l) --batch $(shell expr $(tokens) / $(l))))

# What a model needs besides its data: the order.
define order_of
$(filter %.bm25.shard.zst %.random.shard.zst,$(train.$(1)))
endef

define model
$(OUT)/model/$(1)/model.safetensors: $(OUT)/data/$(set.$(1)).train.shard.zst $(OUT)/data/$(set.$(1)).valid.shard.zst $(call order_of,$(1))
	train $(jobs) $(train.$(1)) --valid $(OUT)/data/$(set.$(1)).valid.shard.zst -o $(OUT)/model/$(1) $$<
endef
$(foreach m,$(models),$(eval $(call model,$(m))))

$(OUT)/data/%.bm25.shard.zst: $(OUT)/data/%.train.shard.zst
	bm25-pack $(jobs) --segment $(segment.$*) $< -o $@
$(OUT)/data/%.random.shard.zst: $(OUT)/data/%.train.shard.zst
	bm25-pack $(jobs) --segment $(segment.$*) --method random $< -o $@

# Stores: of the model's own training data; of a wiki model also NAME-books, of the novels.
stores = plain local long ext ext-random wiki-plain wiki-ext $(drops:%=drop-%)
define store
$(OUT)/store/$(1)/store.json: $(OUT)/model/$(2)/model.safetensors $(OUT)/data/$(3).train.shard.zst
	build-datastore $(jobs) -m $(OUT)/model/$(2) $(fill) $(OUT)/data/$(3).train.shard.zst -o $(OUT)/store/$(1)
endef
$(foreach s,$(stores),$(eval $(call store,$(s),$(s),$(set.$(s)))))
$(foreach s,wiki-plain wiki-ext,$(eval $(call store,$(s)-books,$(s),books)))
