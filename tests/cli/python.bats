#!/usr/bin/env bats
# The module that make wheel packs beside the programs: installed by pip into a fresh environment, it runs the programs of the
# build and reads what they wrote.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  python3 -c 'import numpy, venv' 2>/dev/null && python3 -m pip --version >/dev/null 2>&1 || return 0
  # A tree as tools/dist makes it, whose programs are the build's.
  mkdir -p tree/libexec/tessera tree/lib tree/share/tessera
  for program in "$BIN"/*; do
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$program" >"tree/libexec/tessera/${program##*/}"
  done
  chmod +x tree/libexec/tessera/*
  python3 -m venv --without-pip --system-site-packages env
  wheel=$(python3 "$root/packaging/wheel.py" tree 0.1.0 2.17 .)
  python3 -m pip -q --python env/bin/python install --no-index --no-deps "$wheel" >&2
}

setup() {
  cd "$BATS_TEST_TMPDIR"
  python="$BATS_FILE_TMPDIR/env/bin/python"
  [ -x "$python" ] || skip "python3 with numpy, venv and pip is not there"
  unset TESSERA_BIN PYTHONPATH
  PATH=/usr/bin:/bin
}

@test "python: every program and command is a function with its options, and says them" {
  "$python" - "$BIN" <<'END'
import inspect, pathlib, subprocess, sys, tessera

for program in pathlib.Path(sys.argv[1]).iterdir():
    if program.name == "tessera":
        continue
    rows = [row.split("\t") for row in subprocess.run([program, "--print-flags"], capture_output=True, text=True).stdout.splitlines()]
    commands = [row[0] for row in rows if not row[1]]
    for command in commands or [""]:
        function = getattr(tessera, "_".join(filter(None, [program.name, command])).replace("-", "_"))
        taken = inspect.signature(function).parameters
        for row in rows:
            flag = row[1].split(",")[-1] if "--no-" not in row[1] else row[1].split(",")[-2]
            if row[0] != command or not flag.startswith("--"):
                continue
            name = flag[2:].replace("-", "_")
            if name in ("help", "version", "build_info", "print_flags", "print_config", "force"):
                continue
            assert name in taken or name + "_" in taken, (program.name, command, flag)
            assert name == "json" or f"    {name}" in inspect.getdoc(function), (program.name, flag)
assert (pathlib.Path(tessera.__file__).parent / "py.typed").exists()
END
}

@test "python: shards as arrays, errors with their status, progress line by line" {
  "$python" - "$root/LICENSE" <<'END'
import sys, numpy, tessera

text = open(sys.argv[1], "rb").read()
report = tessera.tokenize(sys.argv[1], tokenizer="bytes", output="text.shard.zst").record
shard = tessera.Shard("text.shard.zst")
assert report["tokens"] == len(text) == len(shard) and shard.info["kind"] == "tokens"
assert shard.array.dtype == numpy.uint8 and shard.array.tobytes() == text
assert shard.text().encode() == text and list(shard.starts) == [0, len(text)]

lines = tessera.tokenize(tokenizer="bytes", input="one\n\nthree\n", format="lines", output="lines.shard.zst")
documents = [bytes(d) for d in tessera.Shard("lines.shard.zst").documents()]
assert [d.strip() for d in documents if d.strip()] == [b"one", b"three"], documents

tessera.gen_moons(count=50, periods=[1, 1.5, 2], output="moons.shard.zst")
moons = tessera.Shard("moons.shard.zst")
assert moons.array.shape == (len(moons), 6) and moons.array.dtype == numpy.float32
assert [d.shape for d in moons.documents()] == [(50, 6)]

heard = []
tessera.tokenize(sys.argv[1], learn="bpe", vocab_size=300, output="tokenizer.json", progress=heard.append)
assert any("300 tokens" in line for line in heard), heard
try:
    tessera.shard_info("nothing")
    raise AssertionError("no error")
except tessera.ProgramFailed as error:
    assert error.code == 66 and error.program == "shard" and "nothing" in str(error)
open("cut.shard.zst", "wb").write(open("text.shard.zst", "rb").read()[:2000])
try:
    tessera.Shard("cut.shard.zst").array
    raise AssertionError("no error")
except tessera.ProgramFailed as error:
    assert error.code == 65 and "cut short" in str(error)
END
}

@test "python: a model is trained, evaluated with a store and compared; tables are arrays" {
  needs train
  head -c 6000 "$root/LICENSE" >train.txt
  tail -c 2000 "$root/LICENSE" >test.txt
  "$python" - <<'END'
import math, numpy, tessera

for part in ("train", "test"):
    tessera.tokenize(f"{part}.txt", tokenizer="bytes", output=f"{part}.shard.zst")
tessera.train("train.shard.zst", output="model", layers=1, d_model=16, heads=2, segment=32, batch=4, steps=4, log_every=2,
              valid="test.shard.zst", valid_every=2, tied=False, jobs=1)
metrics = tessera.read_metrics("model")
assert list(metrics.where("loss")["step"]) == [2, 4] and len(metrics.where("valid_loss")["step"]) >= 2, dict(metrics)
assert tessera.read_timings("model").rows > 0

alone = tessera.eval_ppl("test.shard.zst", model="model", per_token="alone.tsv", jobs=1).record
tessera.build_datastore("train.shard.zst", model="model", output="store", index="exact", jobs=1)
mixed = tessera.eval_ppl("test.shard.zst", model="model", datastore="store", combine="interpolate", per_token="store.tsv", jobs=1).record
table = tessera.read_tokens("store.tsv")
assert table.rows == alone["tokens"] and table["text"].dtype == object
assert abs(table["nats"].mean() - mixed["loss"]) < 1e-4 and not numpy.isnan(table["stores"]).all()
assert numpy.isnan(tessera.read_tokens("alone.tsv")["stores"]).all()
answer = tessera.compare_ppl("alone.tsv", "store.tsv", fail_unless_better=True)
assert bool(answer) == (answer.code == 0) and abs(answer.record["difference"] - (mixed["loss"] - alone["loss"])) < 1e-4

store = tessera.Store("store")
assert store.keys.shape == (len(store), store.info["width"]) and store.keys.dtype == numpy.float16
assert store.values.shape == (len(store),) and list(store.documents) == [0] and store.places is None
written = tessera.sample(model="model", prompt="The ", max_tokens=5, jobs=1).record
assert "text" in written
try:
    import pandas
    assert list(table.pandas().columns)[:3] == ["position", "document", "token"]
except ImportError:
    pass
END
}

@test "python: the code of tessera-python(7) runs as it stands" {
  needs train
  sed -n '1,200p' "$BIN/../share/tessera/novels/the-lost-world.txt" >train.txt
  sed -n '201,240p' "$BIN/../share/tessera/novels/the-lost-world.txt" >test.txt
  sed -n '/^```/,/^```/{/^```/!p}' "$root/man/tessera-python.7.scd" | sed 's/\\\(.\)/\1/g' >code.py
  grep -q 'vocab_size=2000' code.py && grep -q 'steps=200, log_every=10' code.py && grep -q 'max_tokens=40' code.py
  "$python" -c 'import pandas' 2>/dev/null || sed -i '/pandas/d' code.py
  sed -i 's/vocab_size=2000/vocab_size=300/; s/steps=200, log_every=10/steps=2, layers=1, d_model=16, heads=2, segment=32, log_every=1/; s/max_tokens=40/max_tokens=3/' code.py
  OMP_WAIT_POLICY=passive "$python" code.py >said 2>&1 || { tail -n 3 said && return 1; }
  grep -qE '^[0-9.]+$' said
}
