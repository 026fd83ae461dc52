# Stories, cleaned: $(OUT)/train.txt, $(OUT)/valid.txt; the tokenizer; shards. $(OUT)/seen: as many training stories as there are to
# validate on, for the loss on what was trained.

end = <|endoftext|>
print = $(if $(1),$(call text,$(1)),$(error the head of the Makefile says which of STORIES, VALID and ARTICLES the table needs))
form = $(if $(filter %.jsonl %.jsonl.zst,$(1)),jsonl,text)
# So many bytes. (What is left is read too: a closed pipe is an error.)
cut = { head -c $(1); cat >/dev/null; }

$(OUT):
	@mkdir -p $@
define clean_stories
$(OUT)/$(1).txt: | $(OUT)
	$$(call print,$(2)) | $(call cut,$(3)) | clean-babistories --format $(call form,$(2)) --output-format text --json -o $$@ 2>$(OUT)/$(1).stories
endef
$(eval $(call clean_stories,train,$(STORIES),$(bytes.train)))
$(eval $(call clean_stories,valid,$(VALID),$(bytes.valid)))
$(OUT)/seen.txt: $(OUT)/train.txt $(OUT)/valid.txt
	head -c $$(stat -c %s $(OUT)/valid.txt) $< >$@

$(OUT)/tokenizer.json: $(if $(GPT2),,$(OUT)/train.txt) | $(OUT)
	tokenize $(if $(GPT2),--import $(GPT2)/encoder.json $(GPT2)/vocab.bpe,--learn bpe --vocab-size $(vocabulary) $<) -o $@
$(OUT)/%.shard.zst: $(OUT)/%.txt $(OUT)/tokenizer.json
	tokenize -q -t $(OUT)/tokenizer.json --document-separator $$'\n$(end)\n' $< -o $@

# The beginnings of articles: long enough for a window, no longer than needed.
$(OUT)/articles.jsonl: | $(OUT)
	$(call print,$(ARTICLES)) | jq -c 'select(.text | length >= 4 * $(window)) | {text: .text[:8 * $(window)]}' | \
	  { head -n $(articles); cat >/dev/null; } >$@
$(OUT)/articles.shard.zst: $(OUT)/articles.jsonl $(OUT)/tokenizer.json
	tokenize -q -t $(OUT)/tokenizer.json --format jsonl $< -o $@
# Kind and prompt, as many as there are to be; "-" where a line has no kind.
$(OUT)/prompts.tsv: | $(OUT)
	$(call print,$(PROMPTS)) | sed -n '/\t/!s/^/-\t/; 1,$(prompts)p' >$@
$(OUT)/prompts.txt: $(OUT)/prompts.tsv
	cut -f 2- $< >$@
