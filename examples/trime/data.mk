# Texts, tokenizers and shards: $(OUT)/data/SET.PART.shard.zst for the sets words, bytes and books.

# A file of FOLDER called NAME.txt, wiki.NAME.tokens or NAME.jsonl, compressed or not; and the command that prints it.
find = $(firstword $(wildcard $(foreach n,wiki.$(2).tokens $(2).txt $(2).jsonl,$(1)/$(n) $(1)/$(n).zst)))
print = $(if $(1),$(call text,$(1)),$(error $(2): see the head of the Makefile))
parts = train valid test

$(OUT)/data:
	@mkdir -p $@

$(parts:%=$(OUT)/data/words.%.txt): $(OUT)/data/words.%.txt: | $(OUT)/data
	$(call print,$(call find,$(DATA),$*),DATA='$(DATA)': no wiki.$*.tokens and no $*.txt there) \
	  $(if $(filter %.jsonl %.jsonl.zst,$(call find,$(DATA),$*)),| jq -r '" = \(.title) = \n\(.text)"' | sed -E -f as-wikitext) | \
	  sed -n '1,$(lines.$*)p' >$@
# The halves of the validation text, for the models whose test has a store.
$(OUT)/data/words.known.txt: $(OUT)/data/words.valid.txt
	n=$$(wc -l <$<); head -n $$((n / 2)) $< >$@
$(OUT)/data/words.asked.txt: $(OUT)/data/words.valid.txt
	n=$$(wc -l <$<); tail -n +$$((n / 2 + 1)) $< >$@
# Of the novels so many words of each part, as WikiText has them; of the file of bytes so many blocks. (What is left is read too: a
# closed pipe is an error.)
$(parts:%=$(OUT)/data/books.%.txt): $(OUT)/data/books.%.txt: as-wikitext | $(OUT)/data
	$(call print,$(call find,$(BOOKS),$*),BOOKS='$(BOOKS)': no $*.txt and no $*.jsonl there) $(if $(filter %.jsonl %.jsonl.zst,$(call find,$(BOOKS),$*)),| jq -r .text) | \
	  sed -E -f as-wikitext | awk -v most=$(books.$*) 'n < most { n += NF + 1; print }' >$@
$(OUT)/data/bytes.all: | $(OUT)/data
	$(call print,$(wildcard $(XML)),XML='$(XML)': no such file) | { dd bs=64K iflag=fullblock count=$(bytes.blocks) status=none; cat >/dev/null; } >$@
# Which bytes of the file each part is: from and how many, in hundredths.
cut.train = 0 90
cut.valid = 90 5
cut.test = 95 5
$(parts:%=$(OUT)/data/bytes.%.txt): $(OUT)/data/bytes.%.txt: $(OUT)/data/bytes.all
	n=$$(wc -c <$<); dd if=$< iflag=skip_bytes,count_bytes skip=$$((n * $(word 1,$(cut.$*)) / 100)) \
	  count=$$((n * $(word 2,$(cut.$*)) / 100)) status=none >$@

$(OUT)/data/words.json: $(OUT)/data/words.train.txt
	tokenize --learn word $(types:%=--vocab-size %) $< -o $@
# Each article of the training text is a document.
$(OUT)/data/words.%.shard.zst: $(OUT)/data/words.%.txt $(OUT)/data/words.json
	$(if $(filter train,$*),$(articles),cat) $< | tokenize -t $(OUT)/data/words.json $(by_article) -o $@
$(OUT)/data/bytes.%.shard.zst: $(OUT)/data/bytes.%.txt
	tokenize -t bytes $< -o $@
$(OUT)/data/books.%.shard.zst: $(OUT)/data/books.%.txt $(OUT)/data/words.json
	tokenize -t $(OUT)/data/words.json $< -o $@
