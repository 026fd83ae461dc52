#!/usr/bin/env bats
# bats file_tags=nightly
# Checkpoints that torch.save writes now: imported, they give the loss of a plain reading, and nothing of them is run.

load transformers
script=checkpoints.py window=32

setup_file() {
  find_peer || return 0
  peer golden made
}

@test "eval-ppl gives an imported model the loss of a plain reading" {
  [ "$(find made -name '*.pt' | wc -l)" -ge 9 ]
  for checkpoint in made/*.pt; do
    name=$(basename "$checkpoint" .pt)
    model import "$checkpoint" -o "$name"
    # The ids as a shard; the mean of what the reading found.
    expected=$(python3 - "made/$name.json" <<'END'
import array, json, sys
golden = json.load(open(sys.argv[1]))
array.array("H", golden["ids"]).tofile(open("ids.bin", "wb"))
print(repr(sum(golden["nll"]) / len(golden["nll"])))
END
    )
    shard import -q --format nanogpt --vocabulary 40 ids.bin -o text.shard.zst
    echo "$name: $expected, $(loss "$name")"
    close "$(loss "$name")" "$expected" 1e-4
    bound=1e-9
    [ "$name" != xl_bands ] || bound=1e-6 # words that have gone through a projection were rounded
    close "$(loss "$name" --dtype float64)" "$expected" $bound
  done
}

@test "a call in a checkpoint is not made, and is an error only where it is a weight" {
  mkdir -p hostile
  peer hostile hostile
  model import hostile/beside.pt -o beside
  model verify beside
  run --separate-stderr model import hostile/weight.pt -o weight
  # shellcheck disable=SC2154  # stderr is bats'
  [ "$status" -eq 65 ]
  [[ $stderr == *"transformer.wpe.weight"* ]]
  [ ! -e ran ]
  [ ! -e weight ]
}
