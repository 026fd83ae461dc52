# How many layers does induction need (footnote 5 of the paper)? A model's accuracy is the share of sequences whose answer, the last
# token, gets more than half of the probability: no less than the share of answers that are the most likely token.

ci.induction = 400
ci.induction.test = 100
ci.induction.model = --d-model 32 --heads 2 --steps 40 --batch 16
ci.induction.mosaic2 = --d-ff 64
small.induction = 20000
small.induction.test = 1000
small.induction.model = --d-model 64 --heads 4 --steps 1500 --batch 32
small.induction.mosaic2 = --d-ff 128
paper.induction = 200000
paper.induction.test = 2000
paper.induction.model = --d-model 128 --heads 8 --steps 10000 --batch 64
paper.induction.mosaic2 = --d-ff 256
induction.recipe = --segment 64 --batches documents --dropout 0 --lr 2e-3 --weight-decay 0.1 --seed 1

induction.models = mosaic-1 mosaic2-1 transformer-1 transformer-2 rope-1 rope-2 gla-1 gla-2 delta-1 delta-2 retnet-1 retnet-2
induction.layers = $(lastword $(subst -, ,$(1)))
arch.rope = transformer --positions rope
induction.name = $(firstword $(subst -, ,$(1)))
# As many parameters as the others, and memories that share the 64 tokens of a sequence.
induction.mosaic2 = $($(SCALE).induction.mosaic2) --short-term 16 --long-term-delay 8 --long-term-delay-most 16
induction.arch = $(strip $(call arch_of,$(induction.name)) $(induction.$(induction.name)))

$(OUT)/induction.train.shard.zst: | $(OUT)
	gen-induction -q -n $($(SCALE).induction) -o $@
$(OUT)/induction.test.shard.zst: | $(OUT)
	gen-induction -q -n $($(SCALE).induction.test) --first $($(SCALE).induction) -o $@

define induction
$(OUT)/induction-$(1)/model.safetensors: $(OUT)/induction.train.shard.zst
	$(RUN) train $(jobs) --arch $(call induction.arch,$(1)) --layers $(call induction.layers,$(1)) $($(SCALE).induction.model) \
	  $(induction.recipe) -o $$(@D) $$<
$(OUT)/induction-$(1).scores: $(OUT)/induction-$(1)/model.safetensors $(OUT)/induction.test.shard.zst
	eval-ppl -q $(jobs) -m $$(<D) --reset document --per-token $$@ -o /dev/null $(OUT)/induction.test.shard.zst
endef
$(foreach m,$(induction.models),$(eval $(call induction,$(m))))

# The last line of each document has the answer.
answers = awk -F '\t' '/^\#/ { next } $$1 == "position" { for (i = 1; i <= NF; ++i) at[$$i] = i; next } { nats[$$at["document"]] = $$at["nats"] } \
  END { for (d in nats) { n++; sum += nats[d]; right += nats[d] < log(2) } printf "%d\t%.3f\t%.4f\n", n, right / n, sum / n }'
$(OUT)/induction.tsv: $(induction.models:%=$(OUT)/induction-%.scores)
	@{ printf 'model\tlayers\tsequences\taccuracy\tnats of the answer\n'; \
	$(foreach m,$(induction.models),printf '%s\t%s\t' '$(call induction.arch,$(m))' $(call induction.layers,$(m)) && \
	  $(answers) $(OUT)/induction-$(m).scores;) } >$@
