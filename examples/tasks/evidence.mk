# make evidence: does what lowers the perplexity of a pretrained model help its answers? At most 20 minutes on two cores.
#
# The model is SmolLM2-135M-Instruct of tools/setup model, or LLM=FOLDER. It knows the first four tenths (e.tenths) of two
# novels as a datastore, as n-grams, as both, or as passages that BM25 finds and puts in front of what it reads. Weights
# are tuned on 20 KB of the fifth tenth. The rest asks: perplexity of 20 KB, the last word of 150 paragraphs, which of
# four endings is a paragraph's own (100 paragraphs). Then the made-up notes of ../your-model are known, and its 12 questions
# are asked, with the weights tuned on the novels.
#
# $(EOUT)/table.tsv: of each row the perplexity; the last words that are the model's first choice, and the right choices, with
# Wilson's intervals of 95 %; and beside them, compared with the model alone, how many more are right and how many fewer, with
# the p of the sign test. $(EOUT)/words.txt: what compare-ppl says of the log-probability of the last words. Needs jq.
# evidence.md has the results of a run.

EOUT ?= build/evidence
LLM ?= $(abspath $(firstword $(wildcard ../../.deps/model/*.gguf) none))
e.words ?= 150
e.endings ?= 100
e.bytes ?= 20000
e.tenths ?= 4
e.rows = alone store ngrams both passages
e.tuned = store ngrams both
e.model = $(EOUT)/model
e.window = --window 512
NOVELS = ../novels/the-lost-world.txt.zst ../novels/the-hound-of-the-baskervilles.txt.zst

evidence: $(EOUT)/table.tsv $(EOUT)/words.txt
	@$(call show,$<)

$(e.model)/config.json:
	$(if $(filter %/none,$(LLM)),$(error LLM: give the folder of a model, or let tools/setup model bring SmolLM2))
	@mkdir -p $(EOUT)
	$(if $(filter %.gguf,$(LLM)),model import $(LLM) -o $(@D),ln -sfn $(LLM) $(@D))

# $(call tenths,FROM,TO): of the lines of each novel; a novel ends with an empty line.
tenths = for novel in $(NOVELS); do zstdcat $$novel >$@.all && n=$$(wc -l <$@.all) && \
  sed -n "$$((n * $(1) / 10 + 1)),$$((n * $(2) / 10))p" $@.all && echo; done
$(EOUT)/novels.txt: $(e.model)/config.json
	{ $(call tenths,0,$(e.tenths)); } >$@
$(EOUT)/tuning.txt: $(e.model)/config.json
	{ $(call tenths,4,5); } | awk -v bytes=$(e.bytes) 'sum < bytes { sum += length($$0) + 1; print }' >$@
$(EOUT)/asked.txt: $(e.model)/config.json
	{ $(call tenths,5,10); } >$@
$(EOUT)/test.txt: $(EOUT)/asked.txt
	awk -v bytes=$(e.bytes) 'sum < bytes { sum += length($$0) + 1; print }' $< >$@
$(EOUT)/notes.txt: ../your-model/notes.txt $(e.model)/config.json
	cp $< $@

e.tokens = tokenize -q -t $(e.model)/tokenizer.json
$(EOUT)/%.shard.zst: $(EOUT)/%.txt
	$(e.tokens) $< -o $@
$(EOUT)/%.store/store.json: $(EOUT)/%.shard.zst
	build-datastore -m $(e.model) --index exact $(e.window) $(jobs) $< -o $(@D) >/dev/null
$(EOUT)/%.ngrams/ngrams.json: $(EOUT)/%.shard.zst
	build-ngrams $(jobs) $< -o $(@D) >/dev/null
$(EOUT)/%.bm25: $(EOUT)/%.shard.zst
	bm25-search build --passage 100 $(jobs) $< -o $@ >/dev/null

# $(call e.flags.ROW,KNOWN): what a row has of the text that it knows, novels or notes.
e.flags.alone =
e.flags.store = --datastore $(EOUT)/$(1).store --k 256 --combine interpolate
e.flags.ngrams = --ngrams $(EOUT)/$(1).ngrams
e.flags.both = $(e.flags.store) $(e.flags.ngrams)
e.flags.passages = --retrieve $(EOUT)/$(1).bm25 --retrieve-every 32 --retrieve-tokens 128
e.known = $(EOUT)/$(1).store/store.json $(EOUT)/$(1).ngrams/ngrams.json $(EOUT)/$(1).bm25

# The weights alone, so that they serve the notes too.
define e.tune
$(EOUT)/$(1).conf: $(EOUT)/tuning.shard.zst $(call e.known,novels)
	$(if $(filter $(1),$(e.tuned)),eval-ppl -m $(e.model) $(e.window) $(jobs) $(call e.flags.$(1),novels) \
	  --tune $$< --tune-output $$@.all && grep -E '^([a-z-]*(lambda|temperature|weights)|tuned-on) ' $$@.all >$$@,echo >$$@)
$(EOUT)/$(1).json: $(EOUT)/test.shard.zst $(EOUT)/$(1).conf
	eval-ppl -m $(e.model) $(e.window) $(if $(filter passages,$(1)),,--stride 256) $(jobs) --config $(EOUT)/$(1).conf $(call e.flags.$(1),novels) \
	  --per-token $$(@:.json=.tsv) --json $$< -o $$@
endef
$(foreach row,$(e.rows),$(eval $(call e.tune,$(row))))

e.ask = awk -f questions.awk -v ask=$(1) -v words=60 -v most=$(2) $(EOUT)/asked.txt
$(EOUT)/words.jsonl: $(EOUT)/asked.txt questions.awk
	$(call e.ask,last-words -v anywhere=1,$(e.words)) | \
	  jq -Rc 'split("\t") | {id: input_line_number, context: .[0], continuation: .[1]}' >$@
$(EOUT)/endings.jsonl: $(EOUT)/asked.txt questions.awk
	$(call e.ask,endings,$(e.endings)) | \
	  jq -Rc 'split("\t") | {id: input_line_number, context: .[0], choices: .[1:5], gold: (.[5] | tonumber)}' >$@
$(EOUT)/questions.jsonl: ../your-model/questions.jsonl $(e.model)/config.json
	cp $< $@

# $(1): the task, $(2): the text that is known, $(3): the row.
define e.answer
$(EOUT)/$(1)-$(3).jsonl: $(EOUT)/$(1).jsonl $(EOUT)/$(3).conf $(call e.known,$(2))
	score -m $(e.model) --config $(EOUT)/$(3).conf $(e.window) $(jobs) $(call e.flags.$(3),$(2)) --per-token --json \
	  --report $$(@:.jsonl=.report) -o $$@ $$<
endef
e.tasks = words endings questions
e.text.words = novels
e.text.endings = novels
e.text.questions = notes
$(foreach task,$(e.tasks),$(foreach row,$(e.rows),$(eval $(call e.answer,$(task),$(e.text.$(task)),$(row)))))

# Right or not, a line a question.
e.right.words = .greedy
e.right.endings = .correct.token
e.right.questions = .correct.token
# $(call e.cells,TASK,ROW): share, low, high; gained, lost, p of the sign test beside the model alone.
e.cells = $$(paste <(jq '$(e.right.$(1))' $(EOUT)/$(1)-alone.jsonl) <(jq '$(e.right.$(1))' $(EOUT)/$(1)-$(2).jsonl) | awk -f ../wilson.awk -f sign_test.awk)
title.alone = the model alone
title.store = with a datastore
title.ngrams = with n-grams
title.both = with both
title.passages = with retrieved passages
$(EOUT)/table.tsv: $(e.rows:%=$(EOUT)/%.json) $(foreach task,$(e.tasks),$(e.rows:%=$(EOUT)/$(task)-%.jsonl))
	@{ printf 'memory\tperplexity'; for task in 'last words' endings notes; do printf '\t%s\tlow\thigh\tmore\tfewer\tp' "$$task"; done; echo; \
	$(foreach row,$(e.rows),printf '%s\t%.2f\t%s\t%s\t%s\n' '$(title.$(row))' "$$(jq .perplexity $(EOUT)/$(row).json)" \
	  "$(call e.cells,words,$(row))" "$(call e.cells,endings,$(row))" "$(call e.cells,questions,$(row))";) } >$@

# A question is a document.
$(EOUT)/words-%.tsv: $(EOUT)/words-%.jsonl
	{ printf 'position\tdocument\ttoken\tnats\n' && \
	  jq -r '.id as $$id | .per_token[] | [$$id, .token, -.log_prob] | @tsv' $< | awk -v OFS='\t' '{ print NR, $$0 }'; } >$@
$(EOUT)/words.txt: $(e.rows:%=$(EOUT)/words-%.tsv)
	for row in $(filter-out alone,$(e.rows)); do \
	  echo "$$row" && compare-ppl $(EOUT)/words-alone.tsv $(EOUT)/words-$$row.tsv; done >$@

.PHONY: evidence
