# Knowledge that stays: a model learns the notes of ../ask, and what it says of them and forgets of other text. Included by the
# Makefile:
#
#   make facts MODEL=FOLDER TEXT=FILE BACKGROUND=FILE
#
# MODEL is a transformer with a tokenizer; TEXT is what it should not forget, BACKGROUND what it knows (another part of the same).
# It trains all weights, a LoRA adapter, or at most $(fact_rows) rows a micro-batch of the tables of n-grams of each of two added layers
# (--only-memory-rows), each with two rates and $(fact_seeds). $(OUT)/facts.tsv has for each the rate, the seed, the notes' sentences (of 60) that it continues
# with their answer, and its loss of TEXT. The first line is the model before.

fact_seeds ?= 1 2 3
fact_epochs ?= 16
fact_common = --from $(MODEL) --segment 128 --batch 4 --batches documents --epochs $(fact_epochs) --schedule linear
facts.full = $(fact_common)
facts.lora = $(fact_common) --lora 16
facts.rows = $(fact_common) --memory-layer ngram --memory-layers $(fact_layers) --only-memory-rows $(fact_rows) --background $(BACKGROUND)
fact_layers ?= 2,8
fact_rows ?= 2000
rates.full = 2e-5 1e-4
rates.lora = 2e-4 1e-3
rates.rows = 1e-2 1e-1
of_facts = $(foreach way,full lora rows,$(foreach rate,$(rates.$(way)),$(foreach seed,$(fact_seeds),$(way)+$(rate)+$(seed))))

$(OUT)/facts.shard.zst: $(wildcard ../ask/notes/*/*)
	@mkdir -p $(OUT)
	for file in $(sort $^); do sed -e '/^#/d; /<h1>\|<title>/d; s@</p>@\n@; s/<[^>]*>//g' "$$file" | awk -v RS= '{ gsub(/\n/, " "); print }'; done | \
	  tokenize -t $(MODEL) --format lines -o $@
$(OUT)/beginnings.jsonl: ../ask/questions.txt
	@mkdir -p $(OUT)
	cut -d '|' -f 2 $< | jq -Rc '{prompt: .}' >$@

# $(call said,OPTIONS): the notes whose sentence is continued by its answer, and the loss of TEXT.
said = paste <(cut -d '|' -f 3 ../ask/questions.txt) \
    <(sample -q $(1) --temperature 0 --max-tokens 24 --json $(OUT)/beginnings.jsonl $(jobs) | jq -c .text) | \
  awk -F '\t' '{ right += index(tolower($$2), tolower($$1)) > 0 } END { printf "%d\t", right }'; \
  eval-ppl -q --json $(1) --window 256 $(jobs) $(TEXT) | jq .loss

$(OUT)/facts/none.row: $(OUT)/beginnings.jsonl
	@mkdir -p $(@D)
	{ printf 'none\t\t\t'; $(call said,-m $(MODEL)); } >$@
# WAY+RATE+SEED
$(of_facts:%=$(OUT)/facts/%.row): $(OUT)/facts/%.row: $(OUT)/facts.shard.zst $(OUT)/beginnings.jsonl
	@mkdir -p $(@D)
	way=$(word 1,$(subst +, ,$*)); \
	$(RUN) train -q $(facts.$(word 1,$(subst +, ,$*))) --lr $(word 2,$(subst +, ,$*)) --seed $(word 3,$(subst +, ,$*)) \
	  $(jobs) -o $(OUT)/facts/$* $<; \
	trained="-m $(OUT)/facts/$*"; [ $$way != lora ] || trained="-m $(MODEL) --adapter $(OUT)/facts/$*"; \
	{ printf '%s\t%s\t%s\t' $(subst +, ,$*); $(call said,$$trained); } >$@
	rm -r $(OUT)/facts/$*
$(OUT)/facts.tsv: $(OUT)/facts/none.row $(of_facts:%=$(OUT)/facts/%.row)
	{ printf 'trained\trate\tseed\tfacts\tloss\n'; cat $^; } >$@
facts: $(OUT)/facts.tsv
	@$(call show,$<)
.PHONY: facts
