# Table 8: how large the data are, $(OUT)/statistics.tsv, of those that are given, and the published tokens beside (Merity et al. 2017;
# enwik8's are bytes). WikiText-103 has 267,735 types, WikiText-2 33,278; they share their validation and test texts.
published.words.train = 103227021 of WikiText-103, 2088628 of WikiText-2
published.words.valid = 217646
published.words.test = 245569
published.bytes.train = 90000000
published.bytes.valid = 5000000
published.bytes.test = 5000000
counted_sets = $(if $(DATA),words) $(if $(XML),bytes) $(if $(BOOKS),$(if $(DATA),books))
counted_shards = $(foreach s,$(counted_sets),$(parts:%=$(OUT)/data/$(s).%.shard.zst))
define count

	@shard info --json $(OUT)/data/$(1).$(2).shard.zst >$@.info
	@./tsv-line '$(1)	$(2)' $@.info elements vocabulary bytes documents | sed 's/$$/\t$(or $(published.$(1).$(2)),-)/' >>$@
endef
$(OUT)/statistics.tsv: $(counted_shards)
	@$(if $(counted_shards),,$(error the table needs DATA or XML: see the head of the Makefile))printf 'text\tpart\ttokens\ttypes\tbytes\tdocuments\tpublished tokens\n' >$@
	$(foreach s,$(counted_sets),$(foreach p,$(parts),$(call count,$(s),$(p))))
	@rm -f $@.info
statistics: $(OUT)/statistics.tsv
	@$(call show,$<)
.PHONY: statistics
