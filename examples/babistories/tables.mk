# The tables. A line's figures are those of JSON files; bytes of weights / 4 are parameters.

number = "$$(sed -nE '1s/.*"$(1)":([^,}]*).*/\1/p' $(2))"
losses = $(call number,loss,$(OUT)/$(1).seen.json) $(call number,loss,$(OUT)/$(1).valid.json)
scores = $(1:%=$(OUT)/%.seen.json) $(1:%=$(OUT)/%.valid.json)

$(OUT)/stories.tsv: $(OUT)/train.shard.zst $(OUT)/valid.shard.zst
	@{ printf 'part\tread\tkept\twords\tcharacters\twords a story\tcharacters a story\tdropped\ttokens\n'; \
	for part in train valid; do jq -r --arg part $$part '[$$part, .read, .kept, .words, .characters, .words_per_story, .characters_per_story, (.dropped | tojson)] | @tsv' $(OUT)/$$part.stories | \
	  sed "s/$$/\t$$(shard info --json $(OUT)/$$part.shard.zst | jq .elements)/"; done; } >$@

row = printf '%s\t%s\t%s\t%s\t%s\t%s\t%.4f\t%.4f\n' '$(1)' $(3) $(call losses,$(2));
usual_model = transformer-$(middle)
$(OUT)/sweep.tsv: $(call scores,$(usual_model) $(sweep))
	@{ printf 'run\tlr\tdropout\tweight decay\twarmup\tsteps\ttraining loss\tvalidation loss\n'; \
	$(call row,usual,$(usual_model),$(lr) $(dropout) $(decay) $(warmup) $(steps)) \
	$(call row,lr,lr,$(lr.low) $(dropout) $(decay) $(warmup) $(steps)) \
	$(call row,dropout,dropout,$(lr) 0 $(decay) $(warmup) $(steps)) \
	$(call row,weight decay,decay,$(lr) $(dropout) $(decay.low) $(warmup) $(steps)) \
	$(call row,warm-up,warmup,$(lr) $(dropout) $(decay) $(warmup.short) $(steps)) \
	$(call row,half,half,$(lr) $(dropout) $(decay) $(warmup) $(steps.half)) \
	$(call row,double,double,$(lr) $(dropout) $(decay) $(warmup) $(steps.double)) } >$@

size = $$(($$(stat -c %s $(OUT)/model/$(1)/model.safetensors) / 4))
$(OUT)/depth.tsv: $(call scores,$(foreach n,$(depths),mosaic-$(n) transformer-$(n)))
	@{ printf 'layers\tmosaic parameters\ttransformer parameters\tmosaic training\tmosaic validation\ttransformer training\ttransformer validation\n'; \
	$(foreach n,$(depths),printf '%s\t%s\t%s\t%.4f\t%.4f\t%.4f\t%.4f\n' $(n) $(call size,mosaic-$(n)) $(call size,transformer-$(n)) \
	  $(call losses,mosaic-$(n)) $(call losses,transformer-$(n));) } >$@
$(OUT)/depth.svg: $(OUT)/depth.tsv depth.gp
	gnuplot -e "table='$<'; out='$@'" depth.gp

# Both models side by side: the deepest write; the middle ones, and the transformer's twins, read an encyclopaedia.
deepest := $(lastword $(depths))
pair = mosaic-$(deepest) transformer-$(deepest)
watched = mosaic-$(middle) transformer-$(middle) $(twins)
$(OUT)/%.continuations: $(OUT)/prompts.txt $(OUT)/model/%/model.safetensors
	sample -q $(jobs) -m $(OUT)/model/$* --beam 2 --max-tokens $(tokens) --json -o $@ $<
$(OUT)/continuations.tsv: $(OUT)/prompts.tsv $(pair:%=$(OUT)/%.continuations)
	@{ printf 'kind\tprompt\tmosaic\ttransformer\n'; \
	paste $< $(foreach m,$(pair:%=$(OUT)/%.continuations),<(jq -r '.text | gsub("\\s+"; " ")' $(m))); } >$@

# Loss by position in a document, $(parts) parts of the window.
$(OUT)/%.articles.scores: $(OUT)/articles.shard.zst $(OUT)/model/%/model.safetensors
	eval-ppl -q $(jobs) -m $(OUT)/model/$* --window $(window) --reset document --per-token $@ -o /dev/null $<
$(OUT)/%.valid.scores: $(OUT)/valid.shard.zst $(OUT)/model/%/model.safetensors
	eval-ppl -q $(jobs) -m $(OUT)/model/$* --window $(window) --reset document --per-token $@ -o /dev/null $<
by_position = awk -F '\t' -v w=$(window) -v parts=16 \
  '/^\#/ { next } $$1 == "position" { for (i = 1; i <= NF; ++i) at[$$i] = i; ++file; document = -1; next } \
  $$at["document"] != document { document = $$at["document"]; base = $$at["position"] } \
  { p = $$at["position"] - base; if (p < w) { b = int(p * parts / w); n[file, b]++; sum[file, b] += $$at["nats"] } } \
  END { for (b = 0; b < parts; ++b) { printf "%d", (b + 0.5) * w / parts; \
    for (f = 1; f <= file; ++f) printf "\t%s", n[f, b] ? sprintf("%.4f", sum[f, b] / n[f, b]) : "-"; print "" } }'
$(OUT)/encyclopaedia.tsv: $(watched:%=$(OUT)/%.articles.scores) $(watched:%=$(OUT)/%.valid.scores)
	@{ printf 'position'; printf '\t%s, articles' $(watched); printf '\t%s, stories' $(watched); echo; $(by_position) $^; } >$@
$(OUT)/encyclopaedia.svg: $(OUT)/encyclopaedia.tsv position.gp
	gnuplot -e "table='$<'; out='$@'" position.gp

# What the last token attends to, a head at a time: on the way from the first token to the last.
$(OUT)/%.short.attention: $(OUT)/model/%/model.safetensors $(OUT)/valid.shard.zst
	probe attention -q $(jobs) -m $(<D) --window $(segment) --sequences $(sequences) -o $@ $(OUT)/valid.shard.zst
$(OUT)/%.long.attention: $(OUT)/model/%/model.safetensors $(OUT)/valid.shard.zst
	probe attention -q $(jobs) -m $(<D) --window $(longest) --sequences $(sequences) -o $@ $(OUT)/valid.shard.zst
# Shares of the first token, of the last sixteen and of what lies further back than in training; the largest mean weight elsewhere.
summary = awk -F '\t' -v w=$(2) -v trained=$(segment) 'NR > 1 { a[$$2, $$3] += $$4; sum[$$2] += $$4; if ($$2 > last) last = $$2 } \
  END { for (h = 0; h <= last; ++h) { late = far = most = 0; \
    for (p = 0; p < w; ++p) { s = a[h, p] / sum[h]; if (p >= w - 16) late += s; if (p < w - trained) far += s; \
      if (p > 0 && p < w - 16 && s > most) most = s } \
    printf "$(1)\t%d\t%d\t%.4f\t%.4f\t%.4f\t%.5f\t%.5f\n", h, w, a[h, 0] / sum[h], late, far, most, 1 / w } }'
$(OUT)/attention.tsv: $(foreach m,$(blocks),$(OUT)/$(m).short.attention $(OUT)/$(m).long.attention)
	@{ printf 'model\thead\twindow\tfirst token\tlast 16\tbeyond training\tmost elsewhere\tif even\n'; \
	$(foreach m,$(blocks),$(call summary,$(m),$(segment)) $(OUT)/$(m).short.attention; $(call summary,$(m),$(longest)) $(OUT)/$(m).long.attention;) } >$@
$(OUT)/attention.svg: $(OUT)/attention.tsv attention.gp
	gnuplot -e "folder='$(OUT)'; out='$@'; models='$(blocks)'; short=$(segment); long=$(longest)" attention.gp

$(OUT)/lambda.tsv: $(OUT)/mosaic-1.short.attention $(OUT)/model/mosaic-1/model.safetensors
	@probe lambda -q -m $(OUT)/model/mosaic-1 -o $(OUT)/lambda.raw
	@awk -F '\t' -v w=$(segment) 'FNR == 1 { ++file; next } file == 1 { mean[$$1, $$2] += $$4 * (w - 1 - $$3); if ($$3 >= w - 16) late[$$1, $$2] += $$4; next } \
	  FNR == 2 { print "layer\thead\tlambda\tmean distance\tshare of the last 16" } \
	  $$2 == "contextual" { printf "%s\t%s\t%.4f\t%.1f\t%.4f\n", $$1, $$3, $$4, mean[$$1, $$3], late[$$1, $$3] }' $< $(OUT)/lambda.raw >$@
