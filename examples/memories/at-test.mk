# What a text gives a model while it is read: memories of the text itself, alone and together. Included by the Makefile:
#
#   make at-test MODELS='FOLDER...' TEXTS='FILE...'
#
# $(OUT)/at-test.tsv has for each model, text and memory the tokens, the perplexity alone, and the difference that the memory makes
# in nats per token, with its interval and p (compare-ppl). The last rows are what one memory adds to all others. A model trained
# with memories keeps its own in every row, "alone" included. Weights and rates are the defaults; nothing is tuned.

read.alone =
read.cache = --cache 4000
read.unigram = --unigram
read.online = --online-ngrams
read.dynamic = --dynamic-evaluation
read.frozen = $(read.cache) $(read.unigram) $(read.online)
read.unlike = $(read.cache) $(read.unigram) $(read.dynamic)
read.all = $(read.frozen) $(read.dynamic)
at_test_window = --window 256
at_test_pairs = alone+cache alone+unigram alone+online alone+dynamic alone+frozen alone+all frozen+all unlike+all

# $(call read,NAME): each model reads each text with it; what is there stays.
define reads
  for folder in $(MODELS); do for text in $(TEXTS); do \
    name=$(OUT)/at-test/$$(basename "$$folder")+$$(basename "$$text" .txt); \
    [ -e "$$name.shard.zst" ] || tokenize -q -t "$$folder" "$$text" -o "$$name.shard.zst"; \
    [ -e "$$name.$(1).json" ] || $(RUN) eval-ppl -q -m "$$folder" $(at_test_window) $(jobs) $(read.$(1)) --per-token "$$name.$(1)" \
      --json "$$name.shard.zst" -o "$$name.$(1).json"; \
  done; done;
endef

$(OUT)/at-test.tsv: $(TEXTS)
	@mkdir -p $(OUT)/at-test
	$(foreach o,alone cache unigram online dynamic frozen unlike all,$(call reads,$(o)))
	{ printf 'model\ttext\ttokens\talone\tfrom\tto\tdifference\tlow\thigh\tp\n'; \
	for folder in $(MODELS); do for text in $(TEXTS); do for pair in $(at_test_pairs); do \
	  model=$$(basename "$$folder") of=$$(basename "$$text" .txt) from=$${pair%+*} to=$${pair#*+}; name=$(OUT)/at-test/$$model+$$of; \
	  compare-ppl --json --force -o "$$name.pair" "$$name.$$from" "$$name.$$to"; \
	  line=$$(../trime/tsv-line "$$model"$$'\t'"$$of" "$$name.alone.json" tokens perplexity); \
	  ../trime/tsv-line "$$line"$$'\t'"$$from"$$'\t'"$$to" "$$name.pair" difference low high p; \
	done; done; done; } >$@

at-test: $(OUT)/at-test.tsv
	@$(call show,$<)
