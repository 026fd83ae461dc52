# IWSLT'14 as Zhong et al. (2022) have it: 6 + 6 layers, d 512; Adam, inverse square root; 50 epochs of 16,384 target tokens an update;
# kNN-MT with k 32, a share of 0.2 and temperature 100, TRIME with k 16. For TRIME, trained from the start, the softmax is not smoothed.
lines.train = 100000000
lines.valid = 100000000
lines.test = 100000000
lower_case = yes
words.most = 175
new.every =
bpe = 10000
smoothing = --label-smoothing 0.1
recipe = --config ../shapes/iwslt.toml --batch-tokens 4096 --accumulate 4 --seed 1 --checkpoint-every 1000 --keep 1
# The best by BLEU of the validation sentences, with beam 5.
by_bleu = --valid-command 'sample -q -m {} --source --beam 5 <$(OUT)/data/valid.$(SRC) | $(SACREBLEU) -b $(OUT)/data/valid.$(TGT)'
recipe.base = $(recipe) $(smoothing) $(by_bleu)
# Its first updates are without memory: 5 epochs of 50 in the released script, where the paper's text has 5 % of all.
recipe.trime = $(recipe) --plain-warmup 0.1 $(by_bleu)
trime_from =
temperature = 10
beam = --beam 4 --length-penalty 0.6
fill = --index IVF4096,SQ8
search = --nprobe 32 --rescore
knn = --k 32 --combine interpolate --datastore-lambda 0.2 --datastore-temperature 100
joint = --k 16 --combine joint --joint-temperature 15
