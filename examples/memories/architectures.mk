# Which memory pays with which architecture? Included by the Makefile: make architectures SCALE=... DATA=...
#
# Every architecture of `archs` is trained on one text with one shape, recipe and number of updates, for each of `seeds`, and once
# more with TRIME's local memory. $(OUT)/architectures.tsv has its test perplexity alone, and the differences in nats that each
# memory of test makes with the weights that are learned by default: the mean over the seeds, and half of its 95 % interval
# (Student's t over seeds) if there are two seeds or more. local is the model trained with the local memory and evaluated with
# it, beside the one trained without memory. Figures are appended as records, ARCH-MEMORY. Run make again to resume.

archs ?= transformer mosaic mosaic2 gla delta retnet linear mamba mamba2 rwkv4 rwkv7 kda window hybrid hyena s4d h3 lstm
seeds ?= $($(SCALE).seeds)
ci.seeds = 1
small.seeds = 1 2 3
hours.seeds = 1 2 3
ci.grid = --layers 2 --d-model 32 --heads 2 --segment 32 --batch 4 --steps 8 --lr 3e-3
small.grid = --layers 2 --d-model 128 --heads 4 --segment 128 --batch 8 --steps 300 --lr 3e-3 --dropout 0.1
hours.grid = $(hours.model)

# What --arch takes for a name of `archs`.
arch.delta = gla --gla-update delta
arch.retnet = gla --gla-decay fixed
arch.linear = gla --gla-decay none
arch.hybrid = hybrid --mixer gla,window
arch_of = --arch $(or $(arch.$(1)),$(1))

read.none = --memory none
read.local = --memory local
read.store = --memory none --datastore $(OUT)/grid/$(1)/store
memories_of_grid = cache unigram online store
# $(call by_default,MEMORY,MODEL): its options; cache, unigram and online are at-test.mk's.
by_default = $(if $(filter none local store,$(1)),,--memory none) $(call read.$(1),$(2))

# $(call grid_model,ARCH,SEED)
define grid_model
$(OUT)/grid/$(1)-$(2)/model.safetensors $(OUT)/grid/$(1)-$(2)-local/model.safetensors: $(shards)
	@mkdir -p $(OUT)/grid
	$(RUN) train -q $($(SCALE).grid) $(call arch_of,$(1)) --seed $(2) $(jobs) $$(if $$(findstring -local/,$$@),--memory local) -o $$(@D) $$<
$(OUT)/grid/$(1)-$(2)/store/store.json: $(OUT)/train.shard.zst $(OUT)/grid/$(1)-$(2)/model.safetensors
	build-datastore -q -m $(OUT)/grid/$(1)-$(2) $($(SCALE).store) $($(SCALE).window) $(jobs) $$< -o $$(@D) >/dev/null
endef
$(foreach a,$(archs),$(foreach s,$(seeds),$(eval $(call grid_model,$(a),$(s)))))
# $(call grid_row,ARCH,SEED,MEMORY)
define grid_row
$(OUT)/grid/$(1)-$(2).$(3).json: $(OUT)/test.shard.zst $(OUT)/grid/$(1)-$(2)$(if $(filter local,$(3)),-local)/model.safetensors \
    $(if $(filter store,$(3)),$(OUT)/grid/$(1)-$(2)/store/store.json)
	eval-ppl -q -m $(OUT)/grid/$(1)-$(2)$(if $(filter local,$(3)),-local) $($(SCALE).window) $(jobs) $(call by_default,$(3),$(1)-$(2)) --json $$< -o $$@
	@$$(call record,eval-ppl,$(1)-$(3),$(2),$$@,perplexity=perplexity)
endef
$(foreach a,$(archs),$(foreach s,$(seeds),$(foreach m,none local $(memories_of_grid),$(eval $(call grid_row,$(a),$(s),$(m))))))

$(OUT)/architectures.tsv: $(foreach a,$(archs),$(foreach s,$(seeds),$(foreach m,none local $(memories_of_grid),$(OUT)/grid/$(a)-$(s).$(m).json)))
	{ $(foreach a,$(archs),$(foreach s,$(seeds),$(foreach m,none local $(memories_of_grid),\
	  printf '%s\t%s\t%s\n' $(a) $(m) "$$(jq .loss $(OUT)/grid/$(a)-$(s).$(m).json)";))) } | \
	awk -F '\t' -v memories='local $(memories_of_grid)' '\
	  BEGIN { split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262", t, " "); n = split(memories, memory, " "); \
	    printf "architecture\tperplexity alone"; for (m = 1; m <= n; ++m) printf "\t%s", memory[m]; print "" } \
	  $$2 == "none" { if (!($$1 in seeds)) arch[++archs] = $$1; ++seeds[$$1]; alone[$$1, seeds[$$1]] = $$3; next } \
	  { loss[$$1, $$2, seeds[$$1]] = $$3 } \
	  END { for (a = 1; a <= archs; ++a) { of = arch[a]; k = seeds[of]; sum = 0; for (s = 1; s <= k; ++s) sum += alone[of, s]; \
	    printf "%s\t%.1f", of, exp(sum / k); \
	    for (m = 1; m <= n; ++m) { sum = squares = 0; \
	      for (s = 1; s <= k; ++s) { d = loss[of, memory[m], s] - alone[of, s]; sum += d; squares += d * d } \
	      mean = sum / k; printf "\t%+.3f", mean; \
	      if (k > 1) printf " ± %.3f", t[k - 1] * sqrt((squares - k * mean * mean) / (k - 1) / k) } \
	    print "" } }' >$@
architectures: $(OUT)/architectures.tsv
	@$(call show,$<)
.PHONY: architectures
