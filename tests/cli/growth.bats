#!/usr/bin/env bats
# Readers whose memory grew with the square of their input: it grows as the input does. `tools/attack growth` tries all readers,
# and their time.

load helpers

setup() { cd "$BATS_TEST_TMPDIR"; }

@test "memory grows as the input does: vocabularies of runs, JSON lines, tables, settings" {
  FUZZ=$BIN/../tests "$root/tests/faults/growth.py" --memory --bytes 65536 json_merges json_unigram json_added json_nested jsonl_ \
    parquet_ settings_ tiktoken gpt2 learn_
}

@test "a reader whose memory grows faster than its input is found" {
  # A program that takes the square of the size of its input.
  mkdir bin
  cat >bin/tokenize <<'END'
#!/usr/bin/env python3
import os
square = b"x" * (os.path.getsize("text") ** 2 // 512)
END
  chmod +x bin/tokenize
  PATH=$PWD/bin:$PATH run -1 "$root/tests/faults/growth.py" --memory --bytes 65536 jsonl_many
  [[ $output == *"not ok jsonl_many: memory grows faster than the input: "* ]]
  [[ $output == *"0 passed, 1 failed, 0 skipped" ]]
}
