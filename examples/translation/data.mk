# Texts, the tokenizer and shards. Of the training pairs every so many English sentences (new.every), with all their German ones, are kept
# from the models: the set `new`; the set `seen` is the rest, or all.

find = $(firstword $(wildcard $(DATA)/$(1) $(DATA)/$(1).zst))
print = $(if $(call find,$(1)),$(call text,$(call find,$(1))),$(error DATA=FOLDER holds no $(1): see the head of the Makefile))
sides = $(SRC) $(TGT)
lower = $(if $(lower_case),| sed 's/.*/\L&/')
moses = $(if $(MOSES),| $(MOSES) -l $(1) -q tokenize)
undo_moses = $(if $(MOSES),| $(MOSES) -l $(TGT) -q detokenize)
held_out = $(if $(call find,valid.$(SRC)),,yes)

$(OUT)/data:
	@mkdir -p $@

$(foreach side,$(sides),$(OUT)/data/test.$(side)): $(OUT)/data/test.%: | $(OUT)/data
	$(call print,test.$*) | sed -n '1,$(lines.test)p' $(lower) $(call moses,$*) >$@
# What the translations are held to: never tokenized.
$(OUT)/data/reference.$(TGT): | $(OUT)/data
	$(call print,test.$(TGT)) | sed -n '1,$(lines.test)p' $(lower) >$@
$(foreach side,$(sides),$(OUT)/data/all.$(side)): $(OUT)/data/all.%: | $(OUT)/data
	$(call print,train.$*) | sed -n '1,$(lines.train)p' $(lower) $(call moses,$*) >$@

ifeq ($(held_out),)
$(foreach side,$(sides),$(OUT)/data/valid.$(side)): $(OUT)/data/valid.%: | $(OUT)/data
	$(call print,valid.$*) | sed -n '1,$(lines.valid)p' $(lower) $(call moses,$*) >$@
endif

# One rule makes all files of the sets, and of `valid` where it is held out: every 23rd pair that is not left out, as in fairseq's script.
sets = seen $(if $(new.every),new)
cut = $(foreach set,$(sets) $(if $(held_out),valid),$(foreach side,$(sides),$(OUT)/data/$(set).$(side)))
$(cut) &: $(OUT)/data/all.$(SRC) $(OUT)/data/all.$(TGT)
	rm -f $(cut)
	paste $^ | awk -F '\t' -v at=$(OUT)/data/ -v s=.$(SRC) -v t=.$(TGT) -v most=$(or $(words.most),0) -v held=$(if $(held_out),23,0) \
	  -v every=$(or $(new.every),0) ' \
	  most { a = split($$1, x, " "); b = split($$2, x, " "); if (!a || !b || a > most || b > most || a > 1.5 * b || b > 1.5 * a) next } \
	  { if (held && ++left % held == 0) set = "valid"; \
	    else { if (!($$2 in number)) number[$$2] = n++; set = every && number[$$2] % every == every - 1 ? "new" : "seen" } \
	    print $$1 >(at set s); print $$2 >(at set t) }'

$(OUT)/data/bpe.json: $(OUT)/data/seen.$(SRC) $(OUT)/data/seen.$(TGT)
	cat $^ | tokenize $(jobs) --learn bpe --vocab-size $(bpe) -o $@ -
$(OUT)/data/%.shard.zst: $(OUT)/data/%.$(SRC) $(OUT)/data/%.$(TGT) $(OUT)/data/bpe.json
	tokenize $(jobs) -t $(OUT)/data/bpe.json --pairs $(OUT)/data/$*.$(SRC) $(OUT)/data/$*.$(TGT) -o $@
# Pairs whose English sentences have words in common stand together.
$(OUT)/data/order.shard.zst: $(OUT)/data/seen.shard.zst
	bm25-pack $(jobs) $< -o $@
