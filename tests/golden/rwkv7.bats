#!/usr/bin/env bats
# bats file_tags=nightly
# Files of RWKV-LM that torch.save writes now, and those of Tessera that torch.load reads.

load transformers
script=rwkv7.py window=64

setup_file() {
  find_peer || return 0
  peer golden made
}

@test "an RWKV-7 has the loss of a plain reading, from a file of RWKV-LM, from fla's folder and written back" {
  python3 -c 'import array, json; array.array("H", json.load(open("made/checkpoints/rwkv7.json"))["ids"]).tofile(open("ids.bin", "wb"))'
  shard import -q --format nanogpt --vocabulary 64 ids.bin -o text.shard.zst
  ids=$(python3 -c 'import json; print(*json.load(open("made/checkpoints/rwkv7.json"))["ids"])')
  mean() { python3 -c 'import json, sys; nll = json.load(open(sys.argv[1]))["nll"]; print(repr(sum(nll) / len(nll)))' "$1"; }
  model import made/checkpoints/rwkv7.pth -o imported
  close "$(loss imported --dtype float64)" "$(mean made/checkpoints/rwkv7.json)" 1e-9
  close "$(loss imported)" "$(mean made/checkpoints/rwkv7.json)" 1e-4
  close "$(loss made/families/rwkv7 --dtype float64)" "$(mean made/families/rwkv7/nll.json)" 1e-9
  train --arch rwkv7 --layers 3 --d-model 16 --heads 2 --segment 8 --batch 1 --steps 3 -o trained text.shard.zst
  for model in imported trained; do
    model export $model --output-format rwkv -o $model.pth
    model export $model --output-format rwkv -o $model.safetensors
    # shellcheck disable=SC2086  # a word an id
    peer loss $model.pth,$model.safetensors $ids >losses
    [ "$(wc -l <losses)" -eq 2 ]
    while read -r found; do close "$found" "$(loss $model --dtype float64)" 1e-6; done <losses
  done
}
