# Rows, $(OUT)/row/NAME.json: model of.NAME scores the test text (or part.NAME) with test.NAME and the stores stores.NAME, tuned on
# the validation text unless once.NAME. Tables, $(OUT)/TABLE.tsv: the rows rows.TABLE.

comma := ,
space := $(subst ,, )
# How far the long memories of a set's models reach; the cache beside TrimeLM has its reach, the window.
cache = --cache $(reach.$(1))
far = --memory local,long --long $(reach.$(1))
near = --cache $(firstword $(subst --window ,,$(window.$(1))))

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
own = --datastore-combine interpolate
# Local, long and the store in one softmax: --tune gives each its own temperature and weight, or, as published, one temperature to all (and
# not to the store what it was calibrated to).
alike = --joint-temperature 1 --tune-temperatures $(subst $(space),$(comma),0.8 0.9 1 1.1 1.2 1.35 1.5 1.75 2 2.5 3 4 5 6.5 8)

# The main table, each model also with more memory than it was trained with.
$(call row,vanilla,       plain, vanilla, --memory none)
$(call row,vanilla-near,  plain, vanilla + cache as far as TrimeLM, --memory none $(call near,words))
$(call row,vanilla-cache, plain, vanilla + cache, --memory none $(call cache,words))
$(call row,knn,           plain, kNN-LM, $(knn), plain)
$(call row,knn-cache,     plain, kNN-LM + cache, $(knn) $(call cache,words), plain)
$(call row,local,         local, TrimeLM, --memory local)
$(call row,local-far,     local, TrimeLM + long, $(call far,words))
$(call row,long,          long,  TrimeLM_long, $(call far,words))
$(call row,ext-local,     ext,   TrimeLM_ext without store, --memory local)
$(call row,ext,           ext,   TrimeLM_ext without long, $(joint), ext)
$(call row,ext-far,       ext,   TrimeLM_ext, $(call far,words) --combine both, ext)
# Not in the paper: the store's entries in a distribution of their own alone, none in the softmax.
$(call row,ext-own,       ext,   TrimeLM_ext without long$(comma) store interpolated, --memory local --combine joint $(own), ext)
$(call row,ext-far-own,   ext,   TrimeLM_ext$(comma) store interpolated, $(call far,words) --combine joint $(own), ext)
rows.main = vanilla vanilla-near vanilla-cache knn knn-cache local local-far long ext-local ext ext-far ext-far-alike ext-own ext-far-own
rows.speed = $(rows.main)
once.vanilla = yes

# The ablations, of the models $(ablated)NAME: at the published scale the 7M ones.
# Table 7: batching method (plain and local: shuffled; long: consecutive; ext: BM25) against test memory.
of.batching = plain local long ext
$(foreach m,$(of.batching),$(call row,b-$(m)-none,  $(ablated)$(m), $(m): none, --memory none))
$(foreach m,$(of.batching),$(call row,b-$(m)-local, $(ablated)$(m), $(m): local, --memory local))
$(foreach m,$(of.batching),$(call row,b-$(m)-far,   $(ablated)$(m), $(m): long, $(call far,words)))
# (What the plain model finds is kNN-LM's: squared distances do not go into one softmax with the products of local memory.)
$(foreach m,$(of.batching),$(call row,b-$(m)-store, $(ablated)$(m), $(m): store, $(if $(filter plain,$(m)),$(knn),$(joint)), $(ablated)$(m)))
$(foreach m,$(of.batching),$(eval once.b-$(m)-none = yes))
rows.batching = $(foreach t,none local far store,$(foreach m,$(of.batching),b-$(m)-$(t)))

# Figure 3: perplexity against the length of the memory, which is that of the window too where it is shorter.
$(call row,length-0, $(ablated)long,  0, --memory none)
$(call row,cache-0,  $(ablated)plain, 0, --memory none)
once.length-0 = yes
once.cache-0 = yes
$(foreach n,$(lengths),$(call row,length-$(n), $(ablated)long, $(n), --memory long --long $(n)))
$(foreach n,$(lengths),$(call row,cache-$(n), $(ablated)plain, $(n) (cache), --memory none --cache $(n)))
rows.length = $(foreach n,0 $(lengths),length-$(n) cache-$(n))
# Beyond the lengths of training: models trained with micro-batches of $(tokens) tokens and of four times as many.
$(foreach n,$(far_lengths),$(foreach m,narrow wide,$(call row,far-$(m)-$(n), reach-$(m), $(m): $(n), --memory long --long $(n))))
rows.far = $(foreach n,$(far_lengths),far-narrow-$(n) far-wide-$(n))

# Table 10: the 7M model. Table 3: segments of 150.
$(call row,small,         small-plain, vanilla, --memory none)
$(call row,small-near,    small-plain, vanilla + cache as far as TrimeLM, --memory none $(call near,words))
$(call row,small-cache,   small-plain, vanilla + cache, --memory none $(call cache,words))
$(call row,small-knn,     small-plain, kNN-LM, $(knn), small-plain)
$(call row,small-local,   small-local, TrimeLM, --memory local)
$(call row,small-long,    small-long,  TrimeLM_long, $(call far,words))
$(call row,small-ext,     small-ext,   TrimeLM_ext without long, $(joint), small-ext)
$(call row,small-ext-far, small-ext,   TrimeLM_ext, $(call far,words) --combine both, small-ext)
rows.small-model = small small-near small-cache small-knn small-local small-long small-ext small-ext-far
once.small = yes
$(call row,medium,       medium-plain, vanilla, --memory none)
$(call row,medium-near,  medium-plain, vanilla + cache as far as TrimeLM, --memory none $(call near,medium))
$(call row,medium-cache, medium-plain, vanilla + cache, --memory none $(call cache,medium))
$(call row,medium-local, medium-local, TrimeLM, --memory local)
$(call row,medium-long,  medium-long,  TrimeLM_long, $(call far,medium))
rows.medium-model = medium medium-near medium-cache medium-local medium-long
once.medium = yes

# Not in the paper: kNN-LM by the number of neighbours. (search has the last of ks.)
$(foreach k,$(ks),$(call row,neighbours-$(k), $(ablated)plain, k=$(k), $(knn), $(ablated)plain)$(eval k.neighbours-$(k) = $(k)))
rows.neighbours = $(ks:%=neighbours-%)

# Table 11: BM25 or random batches for ext; gradient into its memories or none. Table 15: p.
$(call row,order-bm25,   $(ablated)ext,         BM25, $(joint), $(ablated)ext)
$(call row,order-random, $(ablated)ext-random,  random, $(joint), $(ablated)ext-random)
rows.order = order-bm25 order-random
$(call row,stopped,      $(ablated)ext-stopped, BM25 without gradient into the memories, $(joint), $(ablated)ext-stopped)
rows.gradient = order-bm25 stopped
$(foreach p,$(drops),$(call row,drop-$(p), $(call dropping,$(p)), p=$(p), $(joint), $(call dropping,$(p))))
rows.p = $(drops:%=drop-%)

# Not in the paper: orders of the text by p and seed, at test without a store, with it as published, in the softmax alone, and interpolated alone.
of_order = plain both joint own
define order_rows
$(call row,$(1)-plain, $(1), , --memory local)
$(call row,$(1)-both,  $(1), , $(joint), $(1))
$(call row,$(1)-joint, $(1), , --memory local --combine joint, $(1))
$(call row,$(1)-own,   $(1), , --memory local --combine joint $(own), $(1))
endef
$(foreach m,$(of_orders),$(eval $(call order_rows,$(m))))
# Their seeds are their own, and no part of the row's name in the records.
$(foreach m,$(of_orders),$(foreach t,$(of_order),$(eval seed_of.$(m)-$(t) = $(lastword $(subst -, ,$(m))))))
$(foreach m,$(of_orders),$(foreach t,$(of_order),$(eval id.$(m)-$(t) = $(patsubst %-$(lastword $(subst -, ,$(m))),%,$(m))-$(t))))
rows.orders = $(foreach m,$(filter order-%,$(of_orders)),$(m)-plain $(m)-both $(m)-own)
rows.wide-orders = $(foreach m,$(filter wide-%,$(of_orders)),$(m)-plain $(m)-both $(m)-own)

# Table 12: the length L of the segments, which is the window at test too; local memory alone.
$(foreach l,$(segments),$(call row,segment-plain-$(l), segment-plain-$(l), vanilla L=$(l), --memory none))
$(foreach l,$(segments),$(call row,segment-local-$(l), segment-local-$(l), TrimeLM L=$(l), --memory local))
$(foreach l,$(segments),$(eval once.segment-plain-$(l) = yes))
rows.segments = $(foreach l,$(segments),segment-plain-$(l) segment-local-$(l))

# Character level; domain adaptation.
$(call row,bytes,       bytes-plain, vanilla, --memory none)
$(call row,bytes-near,  bytes-plain, vanilla + cache as far as TrimeLM, --memory none $(call near,bytes))
$(call row,bytes-cache, bytes-plain, vanilla + cache, --memory none $(call cache,bytes))
$(call row,bytes-local, bytes-local, TrimeLM, --memory local)
$(call row,bytes-long,  bytes-long,  TrimeLM_long, $(call far,bytes))
rows.bytes = bytes bytes-near bytes-cache bytes-local bytes-long
once.bytes = yes
# The main table's models, on novels that they never saw.
$(call row,d-vanilla,   plain, vanilla, --memory none)
$(call row,d-cache,     plain, vanilla + cache, --memory none $(call cache,words))
$(call row,d-local,     local, TrimeLM, --memory local)
$(call row,d-long,      long,  TrimeLM_long, $(call far,words))
$(call row,d-knn-words, plain, kNN-LM + cache (own store), $(knn) $(call cache,words), plain)
$(call row,d-ext-words, ext,   TrimeLM_ext (own store), $(call far,words) --combine both, ext)
$(call row,d-knn-books, plain, kNN-LM + cache (novels), $(knn) $(call cache,words), plain-books)
$(call row,d-ext-books, ext,   TrimeLM_ext (novels), $(call far,words) --combine both, ext-books)
$(call row,d-ext-both,  ext,   TrimeLM_ext (both), $(call far,words) --combine both, ext ext-books)
rows.domain = d-vanilla d-cache d-local d-long d-knn-words d-ext-words d-knn-books d-ext-books d-ext-both
once.d-vanilla = yes
$(foreach r,$(rows.domain),$(eval on.$(r) = books))

# Table 14: perplexity on the validation text by how often that text has the word, of rows tuned for the main table's way.
by_count = --by frequency --counts $(OUT)/data/words.valid.shard.zst
$(call row,f-vanilla,   $(ablated)plain, vanilla, --memory none $(by_count))
$(call row,f-knn,       $(ablated)plain, kNN-LM, $(knn) $(by_count), $(ablated)plain)
$(call row,f-knn-cache, $(ablated)plain, kNN-LM + cache, $(knn) $(call cache,words) $(by_count), $(ablated)plain)
$(call row,f-local,     $(ablated)local, TrimeLM, --memory local $(by_count))
$(call row,f-long,      $(ablated)long,  TrimeLM_long, $(call far,words) $(by_count))
$(call row,f-ext,       $(ablated)ext,   TrimeLM_ext, $(call far,words) --combine both $(by_count), $(ablated)ext)
rows.frequency = f-vanilla f-knn f-knn-cache f-local f-long f-ext
once.f-vanilla = yes
$(foreach r,$(rows.frequency),$(eval part.$(r) = valid))
# How far a long memory should reach is chosen on the validation text: reach.SET and reach.medium are to be what this says.
chosen.words = long
chosen.medium = medium-long
chosen.bytes = bytes-long
reached = $(if $(DATA),words medium) $(if $(XML),bytes)
$(foreach k,words medium bytes,$(foreach n,$(reaches.$(k)),$(call row,reach-$(k)-$(n), $(chosen.$(k)), $(k) $(n), --memory local$(comma)long --long $(n))))
$(foreach k,words medium bytes,$(foreach n,$(reaches.$(k)),$(eval part.reach-$(k)-$(n) = valid)))
rows.reach = $(foreach k,$(reached),$(reaches.$(k):%=reach-$(k)-%))

# The rows of tables 2, 5, 7 and 10 whose store joins the softmax, with a temperature and a weight of each memory, and with one temperature.
tempered = ext ext-far d-ext-words d-ext-books d-ext-both small-ext small-ext-far $(foreach m,local long ext,b-$(m)-store)
$(foreach r,$(tempered),$(call row,$(r)-alike, $(of.$(r)), $(title.$(r))$(comma) one temperature for all, $(test.$(r)) $(alike), $(stores.$(r))))
$(foreach r,$(tempered),$(eval on.$(r)-alike = $(on.$(r))))

# The text a row is scored on: the model's own, or on.NAME.
on_of = $(or $(on.$(1)),$(set.$(of.$(1))))
# Of what a store finds the scores are those of its keys as they were written, not as the index compressed them.
found = $(if $(1),$(1:%=--datastore $(OUT)/store/%) $(if $(2),$(subst --k $(lastword $(ks)),--k $(2),$(search)),$(search)) --rescore)
define score
$(OUT)/row/$(1).json: $(OUT)/data/$(call on_of,$(1)).$(or $(part.$(1)),test).shard.zst $(OUT)/data/$(call on_of,$(1)).valid.shard.zst \
    $(OUT)/model/$(of.$(1))/model.safetensors $(stores.$(1):%=$(OUT)/store/%/store.json)
	@mkdir -p $$(@D)
	eval-ppl $(jobs) -m $(OUT)/model/$(of.$(1)) $(call window_of,$(of.$(1))) $(test.$(1)) $(call found,$(stores.$(1)),$(k.$(1))) \
	  $(if $(once.$(1)),,--tune $(OUT)/data/$(call on_of,$(1)).valid.shard.zst) --json --timings $$(@:.json=.time) --per-token $$(@:.json=.tsv) -o $$@ $$<
	@$$(call record,eval-ppl,$(or $(id.$(1)),$(1)),$(or $(seed_of.$(1)),$(seed)),$$@,$(call units_of,$(1)))
endef
# What is recorded of a row: of bytes bits, of table 14 the perplexity of each bucket.
units_of = $(if $(filter bytes,$(call on_of,$(1))),bits=bits_per_token,perplexity=perplexity$(if $(findstring --by frequency,$(test.$(1))),@bucket))
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
$(foreach t,main batching small-model medium-model neighbours order gradient segments p bytes domain,$(eval $(call table,$(t))))

# The best of each model is marked.
$(OUT)/reach.tsv: $(rows.reach:%=$(OUT)/row/%.json)
	@$(if $(strip $(reached)),,$(error the table needs DATA or XML: see the head of the Makefile)){ $(foreach r,$(rows.reach),./tsv-line '$(title.$(r))' $(OUT)/row/$(r).json perplexity;) } | sed 's/ /\t/' | sort -t $$'\t' -k1,1 -k3,3g | \
	  awk -F '\t' 'BEGIN { print "model\treach\tperplexity\tchosen" } { print $$0 "\t" ($$1 == last ? "no" : "yes"); last = $$1 }' >$@

# Each pair of the main table's rows by compare-ppl: the ratio of the second's perplexity to the first's.
$(OUT)/significance.tsv: $(rows.main:%=$(OUT)/row/%.json)
	@{ printf 'first\tsecond\tratio\tlow\thigh\tp\n'; declare -A title=($(foreach r,$(rows.main),[$(r)]='$(title.$(r))')); \
	  set -- $(rows.main); while [ $$# -gt 1 ]; do first=$$1; shift; for second; do \
	    compare-ppl $(jobs) --json -o $@.pair --force $(OUT)/row/$$first.tsv $(OUT)/row/$$second.tsv; \
	    ./tsv-line "$${title[$$first]}"$$'\t'"$${title[$$second]}" $@.pair perplexity_ratio ratio_low ratio_high p; done; done; } >$@
	@rm $@.pair

# TRIME's rows with a store: a temperature and a weight of each memory beside one temperature for all.
$(OUT)/temperatures.tsv: $(foreach r,$(tempered),$(OUT)/row/$(r).json $(OUT)/row/$(r)-alike.json)
	@{ printf 'table\trow\tone temperature\teach its own\n'; \
	  $(foreach r,$(tempered),paste <(printf '%s' $(if $(filter d-%,$(r)),5,$(if $(filter b-%,$(r)),7,$(if $(filter small-%,$(r)),10,2)))) \
	    <(./tsv-line '$(title.$(r))' $(OUT)/row/$(r)-alike.json perplexity) <(./tsv-line '' $(OUT)/row/$(r).json perplexity | cut -f 2);) } >$@

# A line a model, and the mean of the seeds behind those of an order and p.
means = awk -F '\t' 'BEGIN { OFS = FS } NR == 1 { print; next } { print; key = $$1 OFS $$2; n[key]++; for (i = 4; i <= NF; i++) sum[key, i] += $$i } \
  !(key in at) { at[key] = ++keys; name[keys] = key } END { for (k = 1; k <= keys; k++) { printf "%s\tmean of %d", name[k], n[name[k]]; \
  for (i = 4; i <= NF; i++) printf "\t%.4g", sum[name[k], i] / n[name[k]]; print "" } }'
order_line = paste <(printf '%s' '$(subst -,	,$(patsubst order-%,%,$(patsubst wide-%,%,$(1))))') \
  $(foreach t,plain both own,<(./tsv-line '' $(OUT)/row/$(1)-$(t).json perplexity | cut -f 2));
$(OUT)/orders.tsv: $(rows.orders:%=$(OUT)/row/%.json)
	@{ printf 'order\tp\tseed\tlocal\tstore\tstore interpolated\n'; $(foreach m,$(filter order-%,$(of_orders)),$(call order_line,$(m))) } | $(means) >$@
$(OUT)/wide-orders.tsv: $(rows.wide-orders:%=$(OUT)/row/%.json)
	@{ printf 'order\tp\tseed\tlocal\tstore\tstore interpolated\n'; $(foreach m,$(filter wide-%,$(of_orders)),$(call order_line,$(m))) } | $(means) >$@

# The speed of evaluation beside the plain model's.
$(OUT)/speed.tsv: $(rows.main:%=$(OUT)/row/%.json)
	@{ $(foreach r,$(rows.main),./tsv-line '$(title.$(r))' $(OUT)/row/$(r).time tokens_per_s;) } | \
	  awk -F '\t' 'NR == 1 { print "row\ttokens_per_s\tshare"; plain = $$2 } { printf "%s\t%.0f\t%.3f\n", $$1, $$2, $$2 / plain }' >$@

# Perplexity against length: TRIME's long memory, and the cache.
$(OUT)/length.tsv: $(rows.length:%=$(OUT)/row/%.json)
	@{ printf 'tokens\tlong\tcache\n'; \
	  $(foreach n,0 $(lengths),paste <(./tsv-line $(n) $(OUT)/row/length-$(n).json perplexity) <(./tsv-line '' $(OUT)/row/cache-$(n).json perplexity | cut -f 2);) } >$@
$(OUT)/far.tsv: $(rows.far:%=$(OUT)/row/%.json)
	@{ printf 'tokens\tnarrow\twide\n'; \
	  $(foreach n,$(far_lengths),paste <(./tsv-line $(n) $(OUT)/row/far-narrow-$(n).json perplexity) <(./tsv-line '' $(OUT)/row/far-wide-$(n).json perplexity | cut -f 2);) } >$@
$(OUT)/length.svg: $(OUT)/length.tsv length.gp
	gnuplot -e "table='$<'; out='$@'" length.gp

# Table 13: is the next token among the labels of the k nearest? (plain: kNN-LM's store; ext: TRIME's.)
define nearest
$(OUT)/row/found-$(1).json: $(OUT)/data/words.test.shard.zst $(OUT)/model/$(1)/model.safetensors $(OUT)/store/$(1)/store.json
	@mkdir -p $$(@D)
	eval-ppl $(jobs) -m $(OUT)/model/$(1) $(call window_of,$(1)) --memory none $(call found,$(1)) --retrieval-at $(subst $(space),$(comma),$(ks)) --json -o $$@ $$<
	@$(foreach k,$(ks),sed -nE 's/.*"tokens":([0-9]+).*"k":$(k),"share":([^}]*).*/{"tokens":\1,"share":\2}/p' $$@ >$$@.$(k) && \
	  $$(call record,eval-ppl,found-$(1)-$(k),$(seed),$$@.$(k),share=share) &&) true
endef

nearest.of = $(ablated)plain $(ablated)ext
$(foreach m,$(nearest.of),$(eval $(call nearest,$(m))))
$(OUT)/retrieval.tsv: $(nearest.of:%=$(OUT)/row/found-%.json)
	@{ printf 'k\tvanilla\tTrimeLM_ext\n'; \
	  $(foreach k,$(ks),printf '%s\t%s\t%s\n' $(k) $(foreach m,$(nearest.of),"$$(sed -nE 's/.*"k":$(k),"share":([^}]*).*/\1/p' $(OUT)/row/found-$(m).json)");) } >$@
$(OUT)/retrieval.svg: $(OUT)/retrieval.tsv retrieval.gp
	gnuplot -e "table='$<'; out='$@'" retrieval.gp

# Table 14.
$(OUT)/frequency.tsv: $(rows.frequency:%=$(OUT)/row/%.json)
	@{ printf 'row\tcount\ttokens\tperplexity\n'; \
	  $(foreach r,$(rows.frequency),sed -nE 's/.*"bucket":"([^"]*)","tokens":([0-9]*),.*"perplexity":([^}]*).*/$(title.$(r))\t\1\t\2\t\3/p' $(OUT)/row/$(r).json;) } >$@

# What make would run for a table from nothing. (By a name that make does not know itself by: with -n it would run.)
again := $(MAKE)
$(OUT)/%.commands: $(OUT)/%.tsv
	@$(again) --no-print-directory -Bn $(OUT)/$*.tsv | sed -zE 's/\\\n\s*/ /g' | \
	  grep -E '^(tokenize|bm25-pack|train|build-datastore|eval-ppl|zstdcat|cat|sed|n=) ?' >$@
