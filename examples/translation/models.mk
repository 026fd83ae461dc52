# Models, $(OUT)/model/NAME; stores, $(OUT)/store/NAME; rows. Recipes come from scale/$(SCALE).mk.
#
# base      a Transformer
# longer    the base trained on without memory, as long as trime: what trime is to be compared with
# trime     TRIME for translation: the softmax and the 8 best target tokens of the micro-batch's other pairs, in one
# longer and trime begin with the base where trime_from says so; where it does not, trime begins anew and there is no longer.

order = --order $(OUT)/data/order.shard.zst
memory = --memory ext --memory-top-k 8 --memory-temperature $(temperature)
from = $(if $(trime_from),--from $(OUT)/model/base)
needs = $(OUT)/data/seen.shard.zst $(OUT)/data/order.shard.zst $(if $(trime_from),$(OUT)/model/base/model.safetensors)

$(OUT)/model/base/model.safetensors: $(OUT)/data/seen.shard.zst $(OUT)/data/valid.shard.zst
	@mkdir -p $(OUT)/model
	$(RUN) train $(jobs) $(recipe.base) --valid $(OUT)/data/valid.shard.zst -o $(@D) $<
$(OUT)/model/longer/model.safetensors: $(needs)
	@mkdir -p $(OUT)/model
	$(RUN) train $(jobs) $(recipe.trime) $(smoothing) $(order) --from $(OUT)/model/base -o $(@D) $<
$(OUT)/model/trime/model.safetensors: $(needs)
	@mkdir -p $(OUT)/model
	$(RUN) train $(jobs) $(recipe.trime) $(memory) $(order) $(from) -o $(@D) $<

# MODEL-SET: the decoder's states on a set's pairs. kNN-MT searches by distance, TRIME by product.
metric.base = l2
metric.longer = l2
metric.trime = ip
define store
$(OUT)/store/$(1)-$(2)/store.json: $(OUT)/model/$(1)/model.safetensors $(OUT)/data/$(2).shard.zst
	@mkdir -p $(OUT)/store
	build-datastore $(jobs) -m $(OUT)/model/$(1) --metric $(metric.$(1)) $(or $(fill.$(2)),$(fill)) $(OUT)/data/$(2).shard.zst -o $$(@D)
endef
$(foreach m,base trime,$(foreach s,$(sets),$(eval $(call store,$(m),$(s)))))

# row NAME, model, title, stores, flags
define name_row
model.$(1) = $(2)
title.$(1) = $(3)
stores.$(1) = $(4)
flags.$(1) = $(5)
rows += $(1)
endef
row = $(eval $(call name_row,$(strip $(1)),$(strip $(2)),$(strip $(3)),$(strip $(4)),$(strip $(5))))

$(call row,base,      base,   Transformer)
$(if $(trime_from),$(call row,longer, longer, Transformer trained on))
$(call row,knn,       base,   kNN-MT, base-seen, $(knn))
$(if $(new.every),$(call row,knn-new, base, kNN-MT + new pairs, base-seen base-new, $(knn)))
$(call row,trime,     trime,  TRIME without store)
$(call row,trime-ext, trime,  TRIME, trime-seen, $(joint))
$(if $(new.every),$(call row,trime-new, trime, TRIME + new pairs, trime-seen trime-new, $(joint)))
