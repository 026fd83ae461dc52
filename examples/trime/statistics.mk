# Table 8: how large the data are, $(OUT)/statistics.tsv, of those that are given. Published: of WikiText-103, 103,227,021 tokens to train on,
# 217,646 and 245,569 to validate and to test, of 267,735 types, the last two WikiText-2's too, which has 2,088,628 to train on and 33,278 types
# (Merity et al. 2017); enwik8's first 90 million bytes, and 5 million each.
counted_sets = $(if $(DATA),words) $(if $(XML),bytes) $(if $(BOOKS),$(if $(DATA),books))
counted_shards = $(foreach s,$(counted_sets),$(parts:%=$(OUT)/data/$(s).%.shard.zst))
$(OUT)/statistics.tsv: $(counted_shards)
	@$(if $(counted_shards),,$(error the table needs DATA or XML: see the head of the Makefile)){ printf 'text\tpart\ttokens\ttypes\tbytes\tdocuments\n'; \
	  for shard in $^; do name=$${shard##*/}; part=$${name#*.}; \
	    shard info --json "$$shard" >$@.info; ./tsv-line "$${name%%.*}"$$'\t'"$${part%%.*}" $@.info elements vocabulary bytes documents; done; } >$@
	@rm $@.info
statistics: $(OUT)/statistics.tsv
	@$(call show,$<)
.PHONY: statistics
