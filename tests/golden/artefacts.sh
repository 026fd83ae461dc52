#!/usr/bin/env bash
# artefacts.sh write: writes what tests/golden/artefacts lacks, with the programs in PATH. What is there is never written again:
#   it was written by an earlier version, and every later version must read it.
# artefacts.sh names: prints the names of all artefacts.
# artefacts.sh show NAME: uses an artefact and prints what it gives, a value a line; artefacts/expected/NAME holds what the
#   version that wrote it printed. Everything but what "write" reads (a text in the folder) is written by the programs.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "${ARTEFACTS:-$root/tests/golden/artefacts}"

# Name of a model, its options, besides those of small_model.
models() {
  cat <<'TABLE'
transformer --context 48
transformer-gpt2 --context 48 --init gpt2 --no-scale-embedding --activation gelu --no-tied --head-bias
transformer-llama --positions rope --norm-kind rms --feed-forward gated --activation silu --no-bias --kv-heads 1 --no-tied --no-scale-embedding
transformer-gemma --positions rope --norm sandwich --norm-kind rms-one --qk-norm head --attention-window 6 --attention-window 32 --attention-softcap 20 --logit-softcap 15 --d-head 6 --rope-local-theta 500 --feed-forward gated
transformer-olmo --positions rope --norm sublayer --qk-norm whole --rope-partial-factor 0.5 --attention-scale 0.4
transformer-neox --positions rope --norm parallel --rope-skip 2 --bias-of qkv --bias-of norm
transformer-yarn --positions rope --rope-scaling yarn --rope-factor 4 --rope-original-positions 8 --norm parallel-one
transformer-llama3 --positions rope --rope-scaling llama3 --rope-factor 4 --rope-original-positions 8 --rope-high-freq-factor 4
transformer-sinusoidal --positions sinusoidal --norm post --activation relu
transformer-alibi --positions alibi --activation gelu-exact --no-final-norm
transformer-no-positions --positions none --memory-key output
transformer-adaptive --context 48 --cutoffs 16 --cutoffs 32 --div-val 2
transformer-adaptive-untied --context 48 --cutoffs 20 --no-tied --d-embedding 12
transformer-experts --positions rope --experts 4 --experts-per-token 2 --feed-forward gated
transformer-experts-all --positions rope --experts 3 --experts-per-token 3 --no-experts-normalised
transformer-product-keys --positions rope --memory-layer product-key --memory-layers 1 --memory-layers 2 --memory-layer-heads 2 --memory-layer-keys 5 --memory-layer-top-k 3
transformer-product-keys-plain --positions rope --memory-layer product-key --memory-layer-keys 4 --memory-layer-top-k 4 --no-memory-layer-shared --no-memory-layer-gate
transformer-ngram-layers --positions rope --memory-layer ngram --memory-layer-heads 2 --memory-layer-rows 31
transformer-local-long --context 48 --memory local,long --plain-warmup 0
transformer-ext --context 48 --memory ext --plain-warmup 0
transformer-xl --arch transformer-xl --layer-memory 12
transformer-xl-lengths --arch transformer-xl --layer-memory 16,5 --clamp-length 7 --no-shared-biases --same-length on --norm post
transformer-xl-product-keys --arch transformer-xl --layer-memory 8 --memory-layer product-key --memory-layer-keys 4 --memory-layer-top-k 3
lstm --arch lstm
lstm-segments --arch lstm --state-memory segments --state-every 4 --state-segments 3
lstm-fenwick --arch lstm --state-memory fenwick --state-levels 4
lstm-recurrent --arch lstm --d-recurrent 6 --no-tied --head-bias
gla --arch gla
linear --arch gla --gla-decay none
retnet --arch gla --gla-decay fixed
delta --arch gla --gla-update delta
delta-plain --arch gla --gla-update delta --gla-decay none --gla-convolution 1
delta-product-keys --arch gla --gla-update delta --memory-layer product-key --memory-layer-keys 4 --memory-layer-top-k 3
gla-segments --arch gla --state-memory segments --state-every 4 --state-segments 3
delta-fenwick --arch gla --gla-update delta --state-memory fenwick --state-levels 4
mamba2 --arch mamba2 --state-size 5
mamba2-plain --arch mamba2 --state-size 3 --expand 1 --gla-convolution 1 --memory-key output
rwkv7 --arch rwkv7
mamba --arch mamba --channel-state 5
kda --arch kda
window --arch window --mixer-window 7
hybrid --arch hybrid --mixer mamba2,rwkv7,window,delta --layers 4 --state-size 5 --mixer-window 5
rwkv4 --arch rwkv4
s4d --arch s4d --channel-state 6
h3 --arch h3 --channel-state 4 --gla-convolution 3
hyena --arch hyena --filter-length 11 --layers 1
mosaic --arch mosaic
mosaic-slots --arch mosaic --persistent-slots 5 --no-scale-output --memory-key output
mosaic2 --arch mosaic2 --short-term 6 --long-term-delay 3 --long-term-delay-most 5
mosaic2-product-keys --arch mosaic2 --short-term 4 --long-term-delay 2 --long-term-delay-most 2 --memory-layer product-key --memory-layer-keys 4 --memory-layer-top-k 3
srupp --arch srupp --layer-memory 12
srupp-last --arch srupp --attention-last 1 --d-projection 4 --forget-bias 1
srupp-none --arch srupp --attention-every none
encoder-decoder --arch encoder-decoder --context 96 --batch-tokens 96
encoder-decoder-post --arch encoder-decoder --context 96 --batch-tokens 96 --norm post --activation relu
TABLE
}

small_model() { train -q -j 1 --layers 2 --d-model 8 --heads 2 --lr 0.02 --steps 12 --warmup 0.2 "$@"; }

# keep FOLDER: of a model, only what a reader of the model needs.
keep() { rm -rf "$1"/metrics.jsonl "$1"/timings.jsonl "$1"/step-*; }

# A shard of each kind and each type of element.
write_shard() {
  case $1 in
    u8) tokenize -q -t tokenizers/word.json text -o "$2" ;;
    u16) tokenize -q -t tokenizers/bpe.json --format lines text -o "$2" ;;
    u32)
      python3 -c 'import array, sys; array.array("I", range(7, 70000, 777)).tofile(sys.stdout.buffer)' |
        shard import -q --format nanogpt --vocabulary 70000 - -o "$2"
      ;;
    bytes) head -n 20 text | tokenize -q -t bytes -o "$2" ;;
    marked)
      head -n 9 text | python3 -c 'import json, sys
for line in sys.stdin: print(json.dumps({"prompt": line[:9], "completion": line[9:]}))' |
        tokenize -q -t tokenizers/bpe.json --format jsonl --loss-on completion -o "$2"
      ;;
    pairs) tokenize -q -t tokenizers/bpe.json --pairs <(grep . text) <(grep . text | rev) -o "$2" ;;
    order) bm25-pack -q -j 1 --segment 16 shards/u8.shard.zst -o "$2" ;;
    order-pairs) bm25-pack -q -j 1 --unit pair shards/pairs.shard.zst -o "$2" ;;
    targets) build-targets -q -j 1 --datastore store/exact --top-k 4 shards/u8.shard.zst -o "$2" ;;
    vectors) gen-moons -q --periods 0.5,1,1.5 --per-unit 10 -n 60 -o "$2" ;;
  esac
}
shards=(u8 u16 u32 bytes marked pairs order order-pairs vectors targets)

# write_one NAME FILE
write_one() {
  local name=${1#*/} options shard=shards/u8.shard.zst
  case $1 in
    tokenizers/word.json) tokenize -q --learn word --vocab-size 64 text -o "$2" ;;
    tokenizers/bpe.json) tokenize -q --learn bpe --vocab-size 300 text -o "$2" ;;
    shards/*) write_shard "$(basename "$1" .shard.zst)" "$2" ;;
    models/forecast) train -q -j 1 --arch mosaic --loss clipped-mse --heads 3 --segment 20 --batch 2 --steps 6 shards/vectors.shard.zst -o "$2" ;;
    models/*)
      options=$(models | sed -n "s/^$name //p")
      [[ $options != *encoder-decoder* ]] || shard=shards/pairs.shard.zst
      # shellcheck disable=SC2086  # several options
      small_model --segment 16 --batch 4 $options "$shard" -o "$2"
      ;;
    store/exact) build-datastore -q -j 1 -m models/transformer --index exact "$shard" -o "$2" ;;
    store/ivf) build-datastore -q -j 1 -m models/transformer --index IVF4,Flat --metric ip "$shard" -o "$2" ;;
    store/codes) build-datastore -q -j 1 -m models/transformer --index IVF4,PQ4x4 --keys pca:4 "$shard" -o "$2" ;;
    ngrams) build-ngrams -q -j 1 "$shard" -o "$2" ;;
    passages) bm25-search build -q -j 1 --passage 24 "$shard" -o "$2" ;;
    adapter) small_model --from models/transformer-llama --lora 2 --lora-targets q_proj --segment 16 --batch 4 "$shard" -o "$2" ;;
    tuned.conf)
      eval-ppl -q -j 1 -m models/transformer --datastore store/exact --k 8 --ngrams ngrams --cache 50 --cache-lambda gate \
        --datastore-combine interpolate --datastore-lambda gate --memory-weights constant --tune "$shard" -o "$2"
      ;;
    checkpoint)
      # A run that was stopped after its second checkpoint.
      run_of_checkpoint "$2"
      rm -rf "$2"/model.safetensors "$2"/step-2 "$2"/step-6
      ;;
  esac
}
run_of_checkpoint() {
  small_model --steps 6 --checkpoint-every 2 --keep 3 --context 48 --segment 16 --batch 4 --memory local --plain-warmup 0 \
    shards/u8.shard.zst -o "$1"
}

names() {
  printf 'tokenizers/%s\n' word.json bpe.json
  printf 'shards/%s.shard.zst\n' "${shards[@]}" | grep -v targets
  models | sed 's/ .*//; s/^/models\//'
  printf '%s\n' models/forecast store/exact store/ivf store/codes shards/targets.shard.zst ngrams passages adapter \
    tuned.conf checkpoint
}

# fields NAME...: of the first JSON line on stdin.
fields() {
  python3 -c 'import json, sys
line = json.loads(sys.stdin.readline())
for name in sys.argv[1:]: print(name, line.get(name))' "$@"
}
# columns NAME...: of a table with a heading on stdin.
columns() {
  python3 -c 'import csv, sys
for row in csv.DictReader((line for line in sys.stdin if line[0] != "#"), delimiter="\t", quoting=csv.QUOTE_NONE): print(*(row[name] for name in sys.argv[1:]))' "$@"
}
loss() { eval-ppl -q -j 1 --window 16 --json "$@" held-out | fields loss; }

# show NAME: the values that must stay.
show() {
  local work file=held-out
  work=$(mktemp -d)
  case $1 in
    tokenizers/*)
      tokenize -q -t "$1" text | shard cat | head -n 40
      tokenize -q -t "$1" text | tokenize -q -t "$1" --decode | head -n 3
      ;;
    shards/*)
      shard verify "$1"
      shard info --json "$1" | fields kind dtype vocabulary elements documents fingerprint
      shard cat "$1" | head -n 16
      case $1 in # and it is accepted
        *order-pairs*) small_model --steps 1 --arch encoder-decoder --context 96 --batch-tokens 96 --order "$1" shards/pairs.shard.zst -o "$work/m" ;;
        *order*) small_model --steps 1 --context 48 --segment 16 --order "$1" shards/u8.shard.zst -o "$work/m" ;;
        *targets*) small_model --steps 1 --context 48 --segment 16 --targets "$1" shards/u8.shard.zst -o "$work/m" ;;
        *marked*) small_model --steps 1 --context 48 --segment 16 --loss-on marked "$1" -o "$work/m" ;;
      esac
      ;;
    models/forecast)
      eval-forecast -q -j 1 -m "$1" --length 12 --horizon 2 --sequences 4 --json shards/vectors.shard.zst
      ;;
    models/*)
      [[ $1 != *encoder-decoder* ]] || file=shards/pairs.shard.zst
      eval-ppl -q -j 1 -m "$1" --per-token "$work/scores" --json "$file" | sed 's/.*|model:\([0-9a-f]*\)|.*/fingerprint \1/'
      columns token nats <"$work/scores" | sed -n 1,16p
      ;;
    store/*)
      store verify "$1" >&2
      store info --json "$1" | fields rows width metric index keys fingerprint
      store search -m models/transformer --k 3 --json "$1" 'the terms and conditions' | sed -n '2,$p'
      loss -m models/transformer --datastore "$1" --k 8 --datastore-lambda 0.25 --combine interpolate
      ;;
    ngrams)
      ngrams verify ngrams >&2
      ngrams find -i ngrams --json 'shall mean' | sort
      loss -m models/transformer --ngrams ngrams --ngrams-lambda 0.3
      ;;
    passages)
      bm25-search info --json passages
      bm25-search find -i passages --k 2 <<<'the copyright owner'
      loss -m models/transformer --retrieve passages
      ;;
    adapter)
      loss -m models/transformer-llama
      loss -m models/transformer-llama --adapter adapter
      ;;
    tuned.conf) loss -m models/transformer --config tuned.conf ;;
    checkpoint)
      cp -r checkpoint "$work/run"
      run_of_checkpoint "$work/run"
      loss -m "$work/run" --memory none
      tail -n 1 "$work/run/metrics.jsonl" | fields step loss
      ;;
  esac
  rm -rf "$work"
}

case ${1:-} in
  names) names ;;
  show) show "$2" ;;
  write)
    for name in $(names); do
      if [ ! -e "$name" ]; then
        mkdir -p "$(dirname "$name")"
        write_one "$name" "$name"
        [ ! -d "$name" ] || [ "$name" = checkpoint ] || keep "$name"
      fi
      if [ ! -e "expected/$name" ]; then
        mkdir -p "$(dirname "expected/$name")"
        show "$name" >"expected/$name.tmp"
        mv "expected/$name.tmp" "expected/$name"
      fi
    done
    ;;
  *) echo 'artefacts.sh: write, names or show NAME' >&2 && exit 64 ;;
esac
