# Memories that are trained with the model beside memories of test, alone and in pairs: does one make the other superfluous?
# Included by the Makefile: make trained SCALE=... DATA=...; small takes about 20 minutes on two cores.
#
# All models are of one shape, one text and as many updates of as many tokens: plain; wider, whose feed-forward networks have the
# parameters that the tables have; product-key and ngram, with a table; trime, trained with the local and the long memory; and
# both, which has ngram's table and trime's memories. $(OUT)/trained.tsv has each with memories of test: perplexity, the
# difference from the plain model alone in nats with its interval and p (compare-ppl), parameters, bytes of the model and of what
# it reads, tokens/s. $(OUT)/added.tsv has what ngram's table adds to each memory of test, and n-grams at test to each model.
# $(OUT)/frequency.tsv has the perplexity of tokens by how often the training text has them.

ci.course = $(ci.model)
ci.wider = --d-ff 372
ci.keys = --memory-layer-keys 16 --memory-layer-top-k 4
ci.rows = 64
small.course = --layers 3 --d-model 128 --heads 4 --segment 128 --batch 16 --steps 300 --lr 3e-3 --dropout 0.1 --checkpoint-every 100
small.wider = --d-ff 1960
small.keys = --memory-layer-keys 95 --memory-layer-top-k 16
small.rows = 4096
hours.course = $(hours.model)
hours.wider = --d-ff 4346
hours.keys = --memory-layer-keys 165 --memory-layer-top-k 32
hours.rows = 12800

table.ngram = --memory-layer ngram --memory-layer-rows $($(SCALE).rows)
course.plain =
course.wider = $($(SCALE).wider)
course.product-key = --memory-layer product-key $($(SCALE).keys)
course.ngram = $(table.ngram)
course.trime = --memory local,long
course.both = $(table.ngram) --memory local,long
courses = plain wider product-key ngram trime both

# At test: what each has beside the model. The store is of the model itself.
test.none = --memory none
test.cache = --memory none $(cache)
test.ngrams = --memory none $(ngrams)
test.store = --memory none --datastore $(OUT)/trained/$(1)/store --datastore-combine interpolate --k $($(SCALE).k)
test.cache-ngrams = --memory none $(cache) $(ngrams)
test.long = --memory local,long --long $($(SCALE).reach)
test.long-ngrams = $(test.long) $(ngrams)
with.ngrams = $(OUT)/ngrams/ngrams.json
with.cache-ngrams = $(with.ngrams)
with.long-ngrams = $(with.ngrams)
with.store = $(OUT)/trained/$(1)/store/store.json

# MODEL:TEST
tested = plain:none plain:cache plain:ngrams plain:store plain:cache-ngrams wider:none wider:ngrams \
  product-key:none product-key:cache product-key:ngrams product-key:store \
  ngram:none ngram:cache ngram:ngrams ngram:store ngram:cache-ngrams trime:long trime:long-ngrams both:long both:long-ngrams
# FROM+TO of added.tsv
added = $(foreach t,none cache ngrams store cache-ngrams,plain:$(t)+ngram:$(t)) trime:long+both:long trime:long-ngrams+both:long-ngrams \
  $(foreach m,plain wider product-key ngram,$(m):none+$(m):ngrams) $(foreach m,trime both,$(m):long+$(m):long-ngrams)
model_of = $(firstword $(subst :, ,$(1)))
test_of = $(lastword $(subst :, ,$(1)))
file_of = $(OUT)/tested/$(subst :,/,$(1))

define course
$(OUT)/trained/$(1)/model.safetensors: $(shards)
	@mkdir -p $(OUT)/trained
	$(RUN) train $(model) $($(SCALE).course) $(course.$(1)) -o $$(@D) $$<
$(OUT)/trained/$(1)/store/store.json: $(OUT)/train.shard.zst $(OUT)/trained/$(1)/model.safetensors
	build-datastore -m $(OUT)/trained/$(1) $($(SCALE).store) $($(SCALE).window) $(jobs) $$< -o $$(@D) >/dev/null
endef
$(foreach c,$(courses),$(eval $(call course,$(c))))

# $(call tested_row,MODEL,TEST); its files are not in the model's folder, whose files no program replaces.
define tested_row
$(OUT)/tested/$(1)/$(2).conf: $(OUT)/valid.shard.zst $(OUT)/trained/$(1)/model.safetensors $(call with.$(2),$(1))
	@mkdir -p $$(@D)
	$(if $(filter none,$(2)),touch $$@,eval-ppl -m $(OUT)/trained/$(1) $($(SCALE).window) $(jobs) $(call test.$(2),$(1)) --tune $$< --tune-output $$@)
$(OUT)/tested/$(1)/$(2).json: $(OUT)/test.shard.zst $(OUT)/tested/$(1)/$(2).conf $(OUT)/train.shard.zst
	eval-ppl -m $(OUT)/trained/$(1) $($(SCALE).window) $(jobs) --config $(OUT)/tested/$(1)/$(2).conf $(if $(filter none,$(2)),--memory none) \
	  --by frequency --counts $(OUT)/train.shard.zst --per-token $$(@:.json=.tsv) --timings $$(@:.json=.time) --json $$< -o $$@
$(OUT)/tested/$(1)/$(2).p: $(OUT)/tested/plain/none.json $(OUT)/tested/$(1)/$(2).json
	compare-ppl --json $(OUT)/tested/plain/none.tsv $(OUT)/tested/$(1)/$(2).tsv -o $$@
endef
$(foreach t,$(tested),$(eval $(call tested_row,$(call model_of,$(t)),$(call test_of,$(t)))))

figure = sed -nE '1s/.*"$(1)":"?([^",}]*).*/\1/p' $(2)
parts_of = $(OUT)/trained/$(call model_of,$(1))/model.safetensors $(if $(findstring ngrams,$(call test_of,$(1))),$(OUT)/ngrams) \
  $(if $(filter store,$(call test_of,$(1))),$(OUT)/trained/$(call model_of,$(1))/store)

$(OUT)/trained.tsv: $(foreach t,$(tested),$(call file_of,$(t)).json $(call file_of,$(t)).p)
	@{ printf 'model\tat_test\tperplexity\tdifference\tlow\thigh\tp\tparameters\tbytes\ttokens_per_s\n'; \
	$(foreach t,$(tested),printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' $(call model_of,$(t)) $(call test_of,$(t)) \
	  "$$($(call figure,perplexity,$(call file_of,$(t)).json))" "$$($(call figure,difference,$(call file_of,$(t)).p))" \
	  "$$($(call figure,low,$(call file_of,$(t)).p))" "$$($(call figure,high,$(call file_of,$(t)).p))" "$$($(call figure,p,$(call file_of,$(t)).p))" \
	  "$$(model info --json $(OUT)/trained/$(call model_of,$(t)) | $(call figure,parameters,-))" \
	  "$$(du -sbc $(call parts_of,$(t)) | tail -n 1 | cut -f 1)" "$$($(call figure,tokens_per_s,$(call file_of,$(t)).time))";) } >$@

$(OUT)/frequency.tsv: $(foreach t,$(tested),$(call file_of,$(t)).json)
	@{ printf 'model\tat_test\tcount\ttokens\tperplexity\n'; \
	$(foreach t,$(tested),sed -nE 's/.*"bucket":"([^"]*)","tokens":([0-9]*),.*"perplexity":([^}]*).*/$(call model_of,$(t))\t$(call test_of,$(t))\t\1\t\2\t\3/p' \
	  $(call file_of,$(t)).json;) } >$@

$(OUT)/added.tsv: $(foreach t,$(tested),$(call file_of,$(t)).json)
	@{ printf 'from\tto\tdifference\tlow\thigh\tp\n'; \
	for pair in $(added); do \
	  from=$${pair%+*} to=$${pair#*+}; \
	  compare-ppl --json $(OUT)/tested/$${from/:/\/}.tsv $(OUT)/tested/$${to/:/\/}.tsv | sed -E \
	    "s/.*\"difference\":([^,]*),\"low\":([^,]*),\"high\":([^,]*),.*\"p\":([^,}]*).*/$$from\t$$to\t\1\t\2\t\3\t\4/"; \
	done; } >$@

trained: $(OUT)/trained.tsv $(OUT)/added.tsv $(OUT)/frequency.tsv
	@$(call show,$<)
	@$(call show,$(OUT)/added.tsv)
	@$(call show,$(OUT)/frequency.tsv)
