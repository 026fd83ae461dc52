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
induction.recipe = --segment 64 --batches documents --dropout 0 --lr 2e-3 --weight-decay 0.1
ci.induction.seeds = 1
small.induction.seeds = 1 2 3
paper.induction.seeds = 1 2 3

# NAME-LAYERS; NAME.MEMORY has a memory of past states (train --state-memory).
induction.models = mosaic-1 mosaic2-1 transformer-1 transformer-2 rope-1 rope-2 gla-1 gla-2 delta-1 delta-2 retnet-1 retnet-2 lstm-1 lstm-2 \
  $(foreach m,gla delta lstm,$(foreach s,segments fenwick,$(foreach l,1 2,$(m).$(s)-$(l))))
induction.runs = $(foreach m,$(induction.models),$(foreach s,$($(SCALE).induction.seeds),$(m)-$(s)))
part_of = $(word $(1),$(subst -, ,$(2)))
arch.rope = transformer --positions rope
state.segments = --state-memory segments --state-every 4 --state-segments 16
state.fenwick = --state-memory fenwick --state-levels 8
# As many parameters as the others, and memories that share the 64 tokens of a sequence.
induction.mosaic2 = $($(SCALE).induction.mosaic2) --short-term 16 --long-term-delay 8 --long-term-delay-most 16
# $(call induction.arch,NAME)
induction.arch = $(strip $(call arch_of,$(basename $(1))) $(induction.$(1)) $(state$(suffix $(1))))

$(OUT)/induction.train.shard.zst: | $(OUT)
	gen-induction -q -n $($(SCALE).induction) -o $@
$(OUT)/induction.test.shard.zst: | $(OUT)
	gen-induction -q -n $($(SCALE).induction.test) --first $($(SCALE).induction) -o $@

# The last line of each document has the answer.
answers = awk -F '\t' '/^\#/ { next } $$1 == "position" { for (i = 1; i <= NF; ++i) at[$$i] = i; next } { nats[$$at["document"]] = $$at["nats"] } \
  END { for (d in nats) { n++; sum += nats[d]; right += nats[d] < log(2) } printf "{\"tokens\":%d,\"accuracy\":%.3f,\"nats\":%.4f}\n", n, right / n, sum / n }'
# $(call induction,RUN,NAME,LAYERS,SEED)
define induction
$(OUT)/induction-$(1)/model.safetensors: $(OUT)/induction.train.shard.zst
	$(RUN) train -q $(jobs) --arch $(call induction.arch,$(2)) --layers $(3) $($(SCALE).induction.model) $(induction.recipe) --seed $(4) -o $$(@D) $$<
$(OUT)/induction-$(1).json: $(OUT)/induction-$(1)/model.safetensors $(OUT)/induction.test.shard.zst
	eval-ppl -q $(jobs) -m $$(<D) --reset document --per-token $(OUT)/induction-$(1).scores -o /dev/null $(OUT)/induction.test.shard.zst
	$$(answers) $(OUT)/induction-$(1).scores >$$@
	@$$(call record,eval-ppl,induction-$(2)-$(3),$(4),$$@,accuracy=accuracy nats=nats)
endef
$(foreach r,$(induction.runs),$(eval $(call induction,$(r),$(call part_of,1,$(r)),$(call part_of,2,$(r)),$(call part_of,3,$(r)))))

$(OUT)/induction.tsv: $(induction.runs:%=$(OUT)/induction-%.json)
	@{ printf 'model\tlayers\tseed\tsequences\taccuracy\tnats of the answer\n'; \
	$(foreach r,$(induction.runs),printf '%s\t%s\t%s\t' '$(call induction.arch,$(call part_of,1,$(r)))' $(call part_of,2,$(r)) $(call part_of,3,$(r)) && \
	  tr -d '{}' <$(OUT)/induction-$(r).json | tr ',' '\n' | cut -d : -f 2 | paste -s;) } >$@
