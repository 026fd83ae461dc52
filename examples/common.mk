# What the examples' Makefiles share; included after their own defaults of SCALE and OUT, if they have any.
#
#   SCALE   how large; OUT, where everything goes; BIN, where programs are looked for before PATH
#   J=N     bounds the threads: $(jobs) in a command
#   RUN     precedes each training: srun ..., nice
#   RECORDS where figures are appended as records (see tools/verdicts) [records.tsv; with SCALE=ci $(OUT)/records.tsv]
#   SETTING the setting of the records [the last part of OUT]. Seeds of one setting have an OUT each, and SETTING in common.

SCALE ?= ci
OUT ?= build/$(SCALE)
BIN ?= ../../build/bin
RUN ?=
J ?=
jobs = $(J:%=-j %)
export PATH := $(abspath $(BIN)):$(PATH)
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

RECORDS ?= $(if $(filter ci,$(SCALE)),$(OUT)/records.tsv,records.tsv)
SETTING ?= $(notdir $(OUT))
# $(call record,PROGRAM,ROW,SEED,FILE,UNIT=NAME...): appends figures of a JSON file to RECORDS.
record = ../record '$(RECORDS)' '$(1)' '$(2)' '$(SETTING)' '$(3)' '$(4)' $(5) -- make $(subst ','\'',$(MAKEOVERRIDES)) $(MAKECMDGOALS)

# $(call show,FILE): a table of tabs, in columns.
show = column -t -s $$'\t' $(1)
# $(call text,FILE): a file's text, compressed with zstd or not.
text = $(if $(filter %.zst,$(1)),zstdcat,cat) $(1)
# $(scale_file): the file of SCALE's settings, where they have one each.
scale_file = $(or $(wildcard scale/$(SCALE).mk),$(error SCALE=$(SCALE): takes $(patsubst scale/%.mk,%,$(wildcard scale/*.mk))))
# $(call expect_scale,VARIABLE,NAMES): SCALE is one for which $(SCALE).VARIABLE is there.
expect_scale = $(if $($(SCALE).$(1)),,$(error SCALE=$(SCALE): takes $(2)))
# $(articles) FILE | tokenize $(by_article): each article of a text that has titles as WikiText's is a document. Its tokens are those of
# one text: --format wikitext would leave out the newline before each title.
articles = sed -E $$'s/^ = [^=].* = *$$/\x1e&/'
by_article = --document-separator $$'\x1e'
