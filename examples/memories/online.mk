# What a text's own n-grams give a model, alone and beside a cache and a unigram. Included by the Makefile:
#
#   make online MODEL=FOLDER TEXTS='FILE...'
#
# $(OUT)/online.tsv has for each text and pair of rows the difference in nats per token with its interval and p (compare-ppl).
# none is the model alone, repeats has a cache and a unigram; the weights are learned.

own.none = --memory none
own.online = $(own.none) --online-ngrams
own.repeats = $(own.none) --cache 4000 --unigram
own.all = $(own.repeats) --online-ngrams
own_window = --window 512 --stride 256
own_pairs = none+online none+repeats none+all repeats+all

$(OUT)/online.tsv: $(TEXTS)
	@mkdir -p $(OUT)/online
	for text in $(TEXTS); do \
	  name=$(OUT)/online/$$(basename "$$text" .txt); \
	  tokenize -q -t $(MODEL) "$$text" -o $$name.shard.zst; \
	  $(foreach o,none online repeats all,$(RUN) eval-ppl -q -m $(MODEL) $(own_window) $(jobs) $(own.$(o)) --per-token $$name.$(o) \
	    --json $$name.shard.zst -o $$name.$(o).json;) \
	done
	{ printf 'text\tfrom\tto\tdifference\tlow\thigh\tp\n'; \
	for text in $(TEXTS); do for pair in $(own_pairs); do \
	  name=$$(basename "$$text" .txt) from=$${pair%+*} to=$${pair#*+}; \
	  compare-ppl --json $(OUT)/online/$$name.$$from $(OUT)/online/$$name.$$to | sed -E \
	    "s/.*\"difference\":([^,]*),\"low\":([^,]*),\"high\":([^,]*),.*\"p\":([^,}]*).*/$$name\t$$from\t$$to\t\1\t\2\t\3\t\4/"; \
	done; done; } >$@

online: $(OUT)/online.tsv
	@$(call show,$<)
