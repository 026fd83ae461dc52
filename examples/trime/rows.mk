# Rows, $(OUT)/row/NAME.json: model of.NAME scores the test text with test.NAME and the stores stores.NAME, tuned on the
# validation text unless once.NAME. Tables, $(OUT)/TABLE.tsv: the rows rows.TABLE.

comma := ,
space := $(subst ,, )
cache = --cache $(reach)
far = --memory local,long --long $(reach)

# row NAME, model, title, flags, stores
define name_row
title.$(1) = $(3)
of.$(1) = $(2)
test.$(1) = $(4)
stores.$(1) = $(5)
all_rows += $(1)
endef
row = $(eval $(call name_row,$(strip $(1)),$(strip $(2)),$(strip $(3)),$(strip $(4)),$(strip $(5))))

knn = --memory none --combine interpolate
joint = --memory local --combine both

# The main table, each model also with more memory than it was trained with.
$(call row,vanilla,       plain, vanilla, --memory none)
$(call row,vanilla-cache, plain, vanilla + cache, --memory none $(cache))
$(call row,knn,           plain, kNN-LM, $(knn), plain)
$(call row,knn-cache,     plain, kNN-LM + cache, $(knn) $(cache), plain)
$(call row,local,         local, TrimeLM, --memory local)
$(call row,local-far,     local, TrimeLM + long, $(far))
$(call row,long,          long,  TrimeLM_long, $(far))
$(call row,ext-local,     ext,   TrimeLM_ext without store, --memory local)
$(call row,ext,           ext,   TrimeLM_ext, $(joint), ext)
$(call row,ext-far,       ext,   TrimeLM_ext + long, $(far) --combine both, ext)
rows.main = vanilla vanilla-cache knn knn-cache local local-far long ext-local ext ext-far
rows.speed = $(rows.main)
once.vanilla = yes

# Batching method (plain and local: shuffled; long: consecutive; ext: BM25) against test memory.
of.batching = plain local long ext
$(foreach m,$(of.batching),$(call row,b-$(m)-none,  $(m), $(m): none, --memory none))
$(foreach m,$(of.batching),$(call row,b-$(m)-local, $(m), $(m): local, --memory local))
$(foreach m,$(of.batching),$(call row,b-$(m)-far,   $(m), $(m): long, $(far)))
$(foreach m,$(of.batching),$(call row,b-$(m)-store, $(m), $(m): store, $(joint), $(m)))
$(foreach m,$(of.batching),$(eval once.b-$(m)-none = yes))
rows.batching = $(foreach t,none local far store,$(foreach m,$(of.batching),b-$(m)-$(t)))

# Perplexity against the length of the memory.
$(foreach n,$(lengths),$(call row,length-$(n), long, $(n), --memory local$(comma)long --long $(n)))
$(foreach n,$(lengths),$(call row,cache-$(n), plain, $(n) (cache), --memory none --cache $(n)))
rows.length = $(lengths:%=length-%) $(lengths:%=cache-%)

# The 7M model.
$(call row,small,       small-plain, vanilla, --memory none)
$(call row,small-cache, small-plain, vanilla + cache, --memory none $(cache))
$(call row,small-local, small-local, TrimeLM, --memory local)
$(call row,small-long,  small-long,  TrimeLM_long, $(far))
rows.small-model = small small-cache small-local small-long
once.small = yes

# BM25 or random batches for ext; gradient into the memories; length of the segments; p.
$(call row,order-bm25,   ext,        BM25, $(joint), ext)
$(call row,order-random, ext-random, random, $(joint), ext-random)
rows.order = order-bm25 order-random
$(call row,stopped, long-stopped, TrimeLM_long without gradient into the memories, $(far))
rows.gradient = long stopped
$(foreach l,$(segments),$(call row,segment-$(l), segment-$(l), L=$(l), $(far)))
rows.segments = $(segments:%=segment-%)
$(foreach p,$(drops),$(call row,drop-$(p), drop-$(p), p=$(p), $(joint), drop-$(p)))
rows.p = $(drops:%=drop-%)

# Character level; domain adaptation.
$(call row,bytes,       bytes-plain, vanilla, --memory none)
$(call row,bytes-cache, bytes-plain, vanilla + cache, --memory none $(cache))
$(call row,bytes-local, bytes-local, TrimeLM, --memory local)
$(call row,bytes-long,  bytes-long,  TrimeLM_long, $(far))
rows.bytes = bytes bytes-cache bytes-local bytes-long
once.bytes = yes
$(call row,d-vanilla,   wiki-plain, vanilla, --memory none)
$(call row,d-cache,     wiki-plain, vanilla + cache, --memory none $(cache))
$(call row,d-local,     wiki-long,  TrimeLM_long with local only, --memory local)
$(call row,d-long,      wiki-long,  TrimeLM_long, $(far))
$(call row,d-knn-wiki,  wiki-plain, kNN-LM + cache (Wikipedia), $(knn) $(cache), wiki-plain)
$(call row,d-ext-wiki,  wiki-ext,   TrimeLM_ext (Wikipedia), $(joint), wiki-ext)
$(call row,d-knn-books, wiki-plain, kNN-LM + cache (novels), $(knn) $(cache), wiki-plain-books)
$(call row,d-ext-books, wiki-ext,   TrimeLM_ext (novels), $(joint), wiki-ext-books)
$(call row,d-ext-both,  wiki-ext,   TrimeLM_ext (both), $(joint), wiki-ext wiki-ext-books)
rows.domain = d-vanilla d-cache d-local d-long d-knn-wiki d-ext-wiki d-knn-books d-ext-books d-ext-both
once.d-vanilla = yes
$(foreach r,$(rows.domain),$(eval on.$(r) = books))

# The text a row is scored on: the model's own, or on.NAME.
on_of = $(or $(on.$(1)),$(set.$(of.$(1))))
define score
$(OUT)/row/$(1).json: $(OUT)/data/$(call on_of,$(1)).test.shard.zst $(OUT)/data/$(call on_of,$(1)).valid.shard.zst \
    $(OUT)/model/$(of.$(1))/model.safetensors $(stores.$(1):%=$(OUT)/store/%/store.json)
	@mkdir -p $$(@D)
	eval-ppl $(jobs) -m $(OUT)/model/$(of.$(1)) $(window.$(set.$(of.$(1)))) $(test.$(1)) $(stores.$(1):%=--datastore $(OUT)/store/%) $(if $(stores.$(1)),$(search)) \
	  $(if $(once.$(1)),,--tune $(OUT)/data/$(call on_of,$(1)).valid.shard.zst) --json --timings $$(@:.json=.time) -o $$@ $$<
endef
$(foreach r,$(all_rows),$(eval $(call score,$(r))))

figures = perplexity bits_per_byte loss signature
define line

	@./tsv-line '$(title.$(1))' $(OUT)/row/$(1).json $(figures) >>$$@
endef
define table
$(OUT)/$(1).tsv: $(rows.$(1):%=$(OUT)/row/%.json)
	@printf 'row$(subst $(space),,$(figures:%=\t%))\n' >$$@
$(foreach r,$(rows.$(1)),$(call line,$(r)))
endef
$(foreach t,main batching small-model order gradient segments p bytes domain,$(eval $(call table,$(t))))

# The speed of evaluation beside the plain model's.
$(OUT)/speed.tsv: $(rows.main:%=$(OUT)/row/%.json)
	@{ $(foreach r,$(rows.main),./tsv-line '$(title.$(r))' $(OUT)/row/$(r).time tokens_per_s;) } | \
	  awk -F '\t' 'NR == 1 { print "row\ttokens_per_s\tshare"; plain = $$2 } { printf "%s\t%.0f\t%.3f\n", $$1, $$2, $$2 / plain }' >$@

# Perplexity against length: TRIME's long memory, and the cache.
$(OUT)/length.tsv: $(rows.length:%=$(OUT)/row/%.json)
	@{ printf 'tokens\tlong\tcache\n'; \
	  $(foreach n,$(lengths),paste <(./tsv-line $(n) $(OUT)/row/length-$(n).json perplexity) <(./tsv-line '' $(OUT)/row/cache-$(n).json perplexity | cut -f 2);) } >$@
$(OUT)/length.svg: $(OUT)/length.tsv length.gp
	gnuplot -e "table='$<'; out='$@'" length.gp

# Is the next token among the labels of the k nearest? (plain: kNN-LM's store; ext: TRIME's.)
define found
$(OUT)/row/found-$(1).json: $(OUT)/data/words.test.shard.zst $(OUT)/model/$(1)/model.safetensors $(OUT)/store/$(1)/store.json
	@mkdir -p $$(@D)
	eval-ppl $(jobs) -m $(OUT)/model/$(1) $(window.words) --memory none --datastore $(OUT)/store/$(1) $(search) --retrieval-at $(subst $(space),$(comma),$(ks)) --json -o $$@ $$<
endef

$(foreach m,plain ext,$(eval $(call found,$(m))))
$(OUT)/retrieval.tsv: $(OUT)/row/found-plain.json $(OUT)/row/found-ext.json
	@{ printf 'k\tvanilla\tTrimeLM_ext\n'; \
	  $(foreach k,$(ks),printf '%s\t%s\t%s\n' $(k) $(foreach m,plain ext,"$$(sed -nE 's/.*"k":$(k),"share":([^}]*).*/\1/p' $(OUT)/row/found-$(m).json)");) } >$@
$(OUT)/retrieval.svg: $(OUT)/retrieval.tsv retrieval.gp
	gnuplot -e "table='$<'; out='$@'" retrieval.gp

# Perplexity by how often the training text has the word.
rows.frequency = vanilla knn local ext
define bucketed
$(OUT)/row/frequency-$(1).json: $(OUT)/data/words.test.shard.zst $(OUT)/data/words.train.shard.zst $(OUT)/model/$(of.$(1))/model.safetensors $(stores.$(1):%=$(OUT)/store/%/store.json)
	@mkdir -p $$(@D)
	eval-ppl $(jobs) -m $(OUT)/model/$(of.$(1)) $(window.words) $(test.$(1)) $(stores.$(1):%=--datastore $(OUT)/store/%) $(if $(stores.$(1)),$(search)) \
	  --by frequency --counts $(OUT)/data/words.train.shard.zst --json -o $$@ $$<
endef
$(foreach r,$(rows.frequency),$(eval $(call bucketed,$(r))))
$(OUT)/frequency.tsv: $(rows.frequency:%=$(OUT)/row/frequency-%.json)
	@{ printf 'row\tcount\ttokens\tperplexity\n'; \
	  $(foreach r,$(rows.frequency),sed -nE 's/.*"bucket":"([^"]*)","tokens":([0-9]*),.*"perplexity":([^}]*).*/$(title.$(r))\t\1\t\2\t\3/p' $(OUT)/row/frequency-$(r).json;) } >$@

# What make would run for a table from nothing. (By a name that make does not know itself by: with -n it would run.)
again := $(MAKE)
$(OUT)/%.commands: $(OUT)/%.tsv
	@$(again) --no-print-directory -Bn $(OUT)/$*.tsv | sed -zE 's/\\\n\s*/ /g' | \
	  grep -E '^(tokenize|bm25-pack|train|build-datastore|eval-ppl|zstdcat|cat|n=) ?' >$@
