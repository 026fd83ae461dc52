# The authors' checkpoints, evaluated as they evaluated them: $(OUT)/released.tsv, published figures beside the measured ones.
#
#   make SCALE=paper RELEASED=FOLDER DATA=~/wikitext-103 [XML=~/enwik8] released
#
# FOLDER holds NAME.pt of whichever are there: trimelm, trimelm-long, trimelm-ext (247M), trimelm-150m, trimelm-150m-long, trimelm-enwik8 and
# trimelm-enwik8-long of TRIME, knnlm of kNN-LM, xl-wikitext-103 and xl-enwik8 of Transformer-XL's PyTorch code; and the vocabulary of each as
# NAME.dict.txt (fairseq's) or NAME.json (tokenizer.json). DATA is WikiText-103 with its titles; trimelm-ext makes a store of all of it, and so does knnlm, in a second row (knnlm-store).

RELEASED ?=
# released NAME, whose windows and set, flags, published figure (TRIME's README and paper; Khandelwal et al. 2020; Dai et al. 2019)
define name_released
window.of.$(1) = $(2)
test.released.$(1) = $(3)
published.$(1) = $(4)
released_all += $(1)
endef
# Shares are as published: none is learned from the text.
constant = --memory-weights constant
# The store joins the softmax, and interpolated by 0.3 too, products over 10.5 (TRIME's README).
ext_is = --combine both --datastore $(OUT)/released/trimelm-ext.store $(search) --datastore-lambda 0.3 --datastore-temperature 10.5
released = $(eval $(call name_released,$(strip $(1)),$(strip $(2)),$(strip $(3)),$(strip $(4))))
# kNN-LM's store: exact squared distances as they are, a quarter of the probability.
knn_is = --combine interpolate --datastore $(OUT)/released/knnlm-store.store $(search) --rescore --datastore-lambda 0.25 --datastore-temperature 1
checkpoint.knnlm-store = knnlm
metric.knnlm-store = l2
metric.trimelm-ext = ip
$(call released,knnlm, words, --memory none, 18.65)
$(call released,knnlm-store, words, --memory none $(constant) $(knn_is), 16.12)
$(call released,trimelm, words, --memory local $(constant) --joint-temperature 1.17, 17.76)
$(call released,trimelm-long, words, $(call far,words) $(constant) --joint-temperature 1.22, 17.64)
$(call released,trimelm-ext, words, $(call far,words) $(constant) --joint-temperature 1.25 $(ext_is), 15.46)
$(call released,trimelm-150m, medium, --memory local $(constant) --joint-temperature 1.03, 25.60)
$(call released,trimelm-150m-long, medium, $(call far,medium) $(constant) --joint-temperature 1.07, 22.66)
$(call released,trimelm-enwik8, bytes, --memory local $(constant) --joint-temperature 1.05, 1.12)
$(call released,trimelm-enwik8-long, bytes, $(call far,bytes) $(constant) --joint-temperature 1.10, 1.05)
$(call released,xl-wikitext-103, xl-words, --memory none, 18.3)
$(call released,xl-enwik8, xl-bytes, --memory none, 0.99)
window.xl-words = --carry on --window $(or $(xl.window),128) --layer-memory $(or $(xl.words),1600) --clamp-length 1000 --same-length on
window.xl-bytes = --carry on --window $(or $(xl.window),128) --layer-memory $(or $(xl.bytes),3800) --clamp-length 1000 --same-length on

set_of = $(if $(filter %bytes,$(window.of.$(1))),bytes,words)
# The file a row's model is in.
file_of = $(RELEASED)/$(or $(checkpoint.$(1)),$(1))
released_here = $(strip $(foreach r,$(released_all),$(if $(wildcard $(call file_of,$(r)).pt),$(r))))
R = $(OUT)/released
$(R):
	@mkdir -p $@
# fairseq's and Transformer-XL's enwik8 is a number a byte, a line as the text's.
$(R)/bytes.%.txt: $(OUT)/data/bytes.%.txt | $(R)
	od -An -v -tu1 -w1 $< | awk '$$1 == 10 { print ""; next } { printf "%s ", $$1 }' >$@
text_of.bytes = $(R)/bytes.$(1).txt
text_of.words = $(OUT)/data/words.$(1).txt
define of_released
$(R)/$(1).json: $(firstword $(wildcard $(call file_of,$(1)).json $(call file_of,$(1)).dict.txt)) | $(R)
	$(if $(wildcard $(call file_of,$(1)).json),cp $$< $$@,tokenize -q --import $$< -o $$@)
$(R)/$(1)/config.json: $(call file_of,$(1)).pt $(R)/$(1).json
	model import -t $(R)/$(1).json $$< -o $(R)/$(1)
$(R)/$(1).%.shard.zst: $(call text_of.$(call set_of,$(1)),%) $(R)/$(1).json
	tokenize -q -t $(R)/$(1).json $$< -o $$@
$(R)/row-$(1).json: $(R)/$(1).test.shard.zst $(R)/$(1)/config.json $(if $(metric.$(1)),$(R)/$(1).store/store.json)
	eval-ppl $(jobs) -m $(R)/$(1) $(window.$(window.of.$(1))) $(test.released.$(1)) --json --timings $$(@:.json=.time) -o $$@ $$<
endef
$(foreach r,$(released_here),$(eval $(call of_released,$(r))))
$(R)/%.store/store.json: $(R)/%.train.shard.zst $(R)/%/config.json
	build-datastore $(jobs) -m $(R)/$* $(window.words) $(index:%=--index %) --metric $(metric.$*) $< -o $(@D)
$(OUT)/released.tsv: $(foreach r,$(released_here),$(R)/row-$(r).json)
	@$(if $(released_here),,$(error the table needs RELEASED, a folder of checkpoints: see released.mk)){ printf 'model\tof a\tmeasured\tpublished\ttokens_per_s\tsignature\n'; \
	  $(foreach r,$(released_here),printf '%s\t%s' $(r) '$(if $(filter bytes,$(call set_of,$(r))),byte: bits,word: perplexity)'; \
	    ./tsv-line '' $(R)/row-$(r).json $(if $(filter bytes,$(call set_of,$(r))),bits_per_token,perplexity) | tr -d '\n'; printf '\t%s' $(published.$(r)); \
	    ./tsv-line '' $(R)/row-$(r).time tokens_per_s | tr -d '\n'; ./tsv-line '' $(R)/row-$(r).json signature;) } >$@
released: $(OUT)/released.tsv
	@$(call show,$<)
.PHONY: released
