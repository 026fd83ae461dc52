#!/usr/bin/env python3
"""llama_peer speed|native MODEL.gguf THREADS TOKENS | serve MODEL.gguf THREADS SLOTS | score MODEL.gguf TEXT f16|f32 | peak COMMAND...

llama.cpp, as the package xllamacpp builds it (for AVX2). speed: tokens a second of a prompt of TOKENS tokens and of the 64
that follow, each the best of three, and the peak of resident memory in MB, the file's mapped pages included. native: the
same by the package llama-cpp-python, which is built for the processor, and the seconds from before the file is opened to the
first token after a prompt of 10 ("first"). serve: its HTTP server, which prints its address and
runs until stdin ends; then the peak. score: the log-probabilities of a greedy continuation of TEXT with keys and values of
that type (f32: without flash attention), a JSON line {"context", "continuation", "log_probs"}. peak: runs COMMAND, and
prints its peak of resident memory in MB."""
import ctypes
import json
import resource
import subprocess
import sys
import time
import urllib.request


def peak_mb(who):
    return resource.getrusage(who).ru_maxrss / 1024


if sys.argv[1] == "peak":
    subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"{peak_mb(resource.RUSAGE_CHILDREN):.6g}")
    sys.exit()


def native(model, threads, length):
    import llama_cpp as llama

    @llama.llama_log_callback
    def silent(*_):
        pass

    llama.llama_log_set(silent, ctypes.c_void_p(0))
    begin = time.perf_counter()
    llama.llama_backend_init()
    loaded = llama.llama_model_load_from_file(model.encode(), llama.llama_model_default_params())
    params = llama.llama_context_default_params()
    params.n_ctx, params.n_batch = length + 128, length
    params.n_threads = params.n_threads_batch = threads
    context = llama.llama_init_from_model(loaded, params)
    vocabulary = llama.llama_model_get_vocab(loaded)
    text = b"The" + b" cat" * (length - 1)
    tokens = (llama.llama_token * length)()
    assert llama.llama_tokenize(vocabulary, text, len(text), tokens, length, False, True) == length

    assert llama.llama_decode(context, llama.llama_batch_get_one(tokens, 10)) == 0
    llama.llama_synchronize(context)
    first = time.perf_counter() - begin

    def seconds(ids, count):
        begin = time.perf_counter()
        assert llama.llama_decode(context, llama.llama_batch_get_one(ids, count)) == 0
        llama.llama_synchronize(context)
        return time.perf_counter() - begin

    prefill, decode = 0, 0
    for _ in range(3):
        llama.llama_memory_clear(llama.llama_get_memory(context), True)
        prefill = max(prefill, length / seconds(tokens, length))
        word = (llama.llama_token * 1)(tokens[1])
        decode = max(decode, 64 / sum(seconds(word, 1) for _ in range(64)))
    print(json.dumps({"prefill": prefill, "decode": decode, "first": first, "peak_mb": round(peak_mb(resource.RUSAGE_SELF), 1)}))


if sys.argv[1] == "native":
    native(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    sys.exit()

import xllamacpp  # noqa: E402


def server(model, threads, slots=1, cells=1024, kind="f16"):
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_parallel, params.n_ctx = slots, slots * cells
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_type_k = params.cache_type_v = getattr(xllamacpp.ggml_type, "GGML_TYPE_" + kind.upper())
    params.port, params.verbosity = 0, -1
    if kind == "f32":  # flash attention keeps values as float16 for itself
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    return xllamacpp.Server(params)


def post(at, path, asked):
    request = urllib.request.Request(at + path, json.dumps(asked).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


if sys.argv[1] == "speed":
    length = int(sys.argv[4])
    running = server(sys.argv[2], int(sys.argv[3]), cells=length + 128)
    prefill, decode = 0, 0
    for _ in range(3):
        timings = post(running.listening_address, "/completion", {
            "prompt": "The" + " cat" * (length - 1), "n_predict": 65, "temperature": 0, "cache_prompt": False, "ignore_eos": True,
        })["timings"]
        assert timings["prompt_n"] == length, timings
        prefill = max(prefill, timings["prompt_per_second"])
        decode = max(decode, timings["predicted_per_second"])
    print(json.dumps({"prefill": prefill, "decode": decode, "peak_mb": round(peak_mb(resource.RUSAGE_SELF), 1)}))
elif sys.argv[1] == "serve":
    running = server(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), 512)
    print(running.listening_address, flush=True)
    sys.stdin.read()
    print(f"{peak_mb(resource.RUSAGE_SELF):.6g}")
else:
    running = server(sys.argv[2], 1, kind=sys.argv[4])
    at = running.listening_address
    ids = post(at, "/tokenize", {"content": sys.argv[3], "add_special": False})["tokens"]
    made = post(at, "/completion", {"prompt": ids, "n_predict": 32, "temperature": 0, "n_probs": 1,
                                    "cache_prompt": False, "ignore_eos": True})
    print(json.dumps({"context": sys.argv[3], "continuation": made["content"],
                      "log_probs": [step["logprob"] for step in made["completion_probabilities"]]}))
