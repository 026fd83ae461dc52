# $(OUT)/train.txt, valid.txt and test.txt: the first lines of files of DATA (WikiText-2's wiki.train.tokens, or train.txt, and
# so on; compressed with zstd or not), else pieces of a novel. $(SCALE).lines is for train.txt, $(SCALE).held for the others.
# Included after common.mk and before any rule for texts.

find = $(firstword $(wildcard $(foreach n,wiki.$(1).tokens $(1).txt,$(DATA)/$(n) $(DATA)/$(n).zst)))
lines = $(if $(filter train,$(1)),$($(SCALE).lines),$($(SCALE).held))
of-data = $(call text,$(or $(call find,$(1)),$(error DATA='$(DATA)': no wiki.$(1).tokens and no $(1).txt there))) | sed -n 1,$(lines)p
of-novel = zstdcat ../novels/the-lost-world.txt.zst | sed -n $(novel.$(1))p
read = $(if $(DATA),$(of-data),$(of-novel))
novel.train = 1,200
novel.valid = 201,230
novel.test = 231,290

# The first rule of a Makefile is its own.
all:

$(OUT)/%.txt:
	@mkdir -p $(OUT)
	$(call read,$*) >$@
