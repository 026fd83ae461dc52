#!/usr/bin/env python3
"""growth.py [--memory] [--bytes N] [CASE...]: whether readers' time and memory grow as their input does.

Each case writes inputs of its worst kind of about N / 64, N, 2 N and 4 N bytes [262144] and runs a program, or a fuzz target
of $FUZZ (the folder of fuzz_plain and fuzz_torch), on each. User time and peak memory beyond those of the first may grow from
N to 4 N by no more than FACTOR, between n log n and n^1.5, or from 2 N, or from one difference to the next, by no more than
its root, unless they are small.
--memory leaves the time out, so that nothing depends on the machine. A CASE is a name or its beginning; none: all. Exit: 0,
or 1 if one grew faster, crashed or ran out of memory. The last line counts cases.
"""
import json
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile

FACTOR, SECONDS, KILOBYTES = 6.5, 0.4, 64 << 10  # what is less than these beyond the first is not looked at
MOST_SECONDS, MOST_BYTES = 60, 8 << 30
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def put(name, content):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return name


def fuzz(target, content):
    for program in ("fuzz_plain", "fuzz_torch"):
        path = os.path.join(os.environ["FUZZ"], program)
        if os.path.exists(path) and target in subprocess.run([path], capture_output=True, text=True, check=True).stdout.split():
            return [path, target, put("input", content)]
    return None


def letters(count):
    return [chr(0x4E00 + i) for i in range(count)]


def tokenize(tokenizer, text, *more):
    put("tokenizer.json", tokenizer if isinstance(tokenizer, str) else json.dumps(tokenizer, ensure_ascii=False))
    put("text", text)
    return ["tokenize", "-q", "-j", "1", "-t", "tokenizer.json", *more, "text", "-o", "out.shard.zst"]


def whole(model, **more):
    return {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
            "model": model, **more}


def bpe(vocabulary, merges, **more):
    return whole({"type": "BPE", "vocab": {piece: i for i, piece in enumerate(vocabulary)}, "merges": merges}, **more)


# tokenizer.json: its own size, or that of the text.

def runs_of_letters(n, length=64):
    """Pieces x, xx, ..., x^length of each letter: n bytes of them."""
    return [x * i for x in letters(max(1, n * 2 // (3 * length * length))) for i in range(1, length + 1)]


@case
def json_merges(n):
    pieces = runs_of_letters(n // 3)
    merges = [[piece[1:], piece[0]] for piece in pieces if len(piece) > 1]
    return tokenize(bpe(pieces, merges), "".join(letters(9)) * 9)


@case
def json_merges_of_text(n):
    pieces = ["a" * (1 << i) for i in range(12)]
    return tokenize(bpe(pieces, [[piece, piece] for piece in pieces[:-1]]), "a" * n)


@case
def json_unigram(n):
    pieces = runs_of_letters(n // 2)
    vocabulary = [["<unk>", 0.0]] + [[piece, -1.0 - len(piece)] for piece in pieces]
    return tokenize(whole({"type": "Unigram", "unk_id": 0, "vocab": vocabulary}), "".join(letters(9)) * 9)


@case
def json_unigram_of_text(n):
    vocabulary = [["<unk>", 0.0]] + [["a" * i, -1.0 - i] for i in range(1, 17)]
    return tokenize(whole({"type": "Unigram", "unk_id": 0, "vocab": vocabulary}), "a" * n)


@case
def json_words(n):
    vocabulary = {"w%d" % i: i + 1 for i in range(n // 16)}
    return tokenize(whole({"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, **vocabulary}},
                          pre_tokenizer={"type": "WhitespaceSplit"}), "w1 w2 w3")


def added(count, common=""):
    return [{"id": 1 + i, "content": "<%s%d>" % (common, i), "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True} for i in range(count)]


@case
def json_added(n):
    return tokenize(bpe(["a"], [], added_tokens=added(n // 160, "a" * 20)), ("<" + "a" * 20) * 500)


@case
def json_added_of_text(n):
    return tokenize(bpe(["a", "<"], [], added_tokens=added(200, "a" * 20)), ("<" + "a" * 19) * (n // 20))


@case
def json_split_of_text(n):
    split = {"type": "Split", "pattern": {"Regex": "(a|aa)+b|a"}, "behavior": "Isolated", "invert": False}
    return tokenize(bpe(["a"], [], pre_tokenizer=split), "a" * n)


@case
def json_runs_of_text(n):
    split = {"type": "Split", "pattern": {"Regex": "\\s+(?!\\S)|\\s+|\\S+"}, "behavior": "Isolated", "invert": False}
    return tokenize(bpe([" ", "a"], [], pre_tokenizer=split), " " * n)


@case
def json_normalizers(n):
    steps = [{"type": "Replace", "pattern": {"String": "x%d" % i}, "content": "y"} for i in range(n // 64)]
    return tokenize(bpe(["a"], [], normalizer={"type": "Sequence", "normalizers": steps}), "a" * 50)


@case
def json_replace_of_text(n):
    step = {"type": "Replace", "pattern": {"String": "a" * 50 + "b"}, "content": "c"}
    return tokenize(bpe(["a"], [], normalizer=step), "a" * n)


@case
def json_marks_of_text(n):
    return tokenize(bpe(["a"], [], normalizer={"type": "NFC"}), "a" + "\u0301\u0323" * (n // 4))


@case
def json_nested(n):
    return tokenize("[" * n, "a")


@case
def json_nested_objects(n):
    return tokenize('{"a":' * (n // 5), "a")


@case
def json_members(n):
    return tokenize(bpe(["a"], [], **{"m%d" % i: [] for i in range(n // 12)}), "a")


@case
def json_decode(n):
    tokenizer = bpe(["a", "b"], [], decoder={"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "a" * 50 + "b"}, "content": "c"}, {"type": "Fuse"},
        {"type": "Strip", "content": "a", "start": 1, "stop": 0}]})
    command = tokenize(tokenizer, "a" * n)
    return ["sh", "-c", '"$@" && exec tokenize -q --decode out.shard.zst -o decoded', "sh", *command]


# Other vocabularies.

def sentencepiece(pieces, kind=2):
    def field(number, content):
        return varint(number << 3 | 2) + varint(len(content)) + content

    def piece(text, score, type_of):
        return field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + b"\x18" + varint(type_of))
    return (piece("<unk>", 0, 2) + b"".join(piece(text, -float(i), type_of) for i, (text, type_of) in enumerate(pieces)) +
            field(2, b"\x18" + varint(kind)))


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


@case
def model_merges(n):
    return fuzz("sentencepiece", sentencepiece([(piece, 1) for piece in runs_of_letters(n, 256)]))


@case
def model_unigram(n):
    return fuzz("sentencepiece", sentencepiece([(piece, 1) for piece in runs_of_letters(n, 256)], 1))


@case
def model_symbols(n):
    return fuzz("sentencepiece", sentencepiece([("a" * 20 + str(i), 4) for i in range(n // 40)]))


@case
def model_of_text(n):
    put("tokenizer.model", sentencepiece([("a", 1), ("\u2581", 1), ("\u2581\u2581", 4), ("aab", 4)] + [("a" * i, 1) for i in range(2, 17)]))
    put("text", "a a" * (n // 3))
    return ["tokenize", "-q", "-j", "1", "-t", "tokenizer.model", "text", "-o", "out.shard.zst"]


@case
def tiktoken(n):
    import base64
    pieces = [bytes([i]) for i in range(256)] + [b"a" * i for i in range(2, max(3, int((n * 3 / 2) ** 0.5)))]
    ranks = b"".join(base64.b64encode(piece) + b" %d\n" % i for i, piece in enumerate(pieces))
    return ["tokenize", "-q", "--import", put("ranks.tiktoken", ranks), "-o", "out.json"]


@case
def tiktoken_long(n):
    import base64
    pieces = [bytes([i]) for i in range(256)] + [b"a" * (1 << i) for i in range(1, 10)] + [b"a" * (n * 3 // 4)]
    ranks = b"".join(base64.b64encode(piece) + b" %d\n" % i for i, piece in enumerate(pieces))
    return ["tokenize", "-q", "--import", put("ranks.tiktoken", ranks), "-o", "out.json"]


@case
def fairseq(n):
    return ["tokenize", "-q", "--import", put("dict.txt", "".join("w%d 1\n" % i for i in range(n // 9))), "-o", "out.json"]


@case
def codes(n):
    lines = "".join("%s %s\n" % (piece[1:], piece[0]) for piece in runs_of_letters(n) if len(piece) > 1)
    return ["tokenize", "-q", "--import", put("codes.bpe", "#version: 0.2\n" + lines), "-o", "out.json"]


@case
def gpt2(n):
    pieces = runs_of_letters(n // 3)
    put("encoder.json", json.dumps({piece: i for i, piece in enumerate(pieces)}, ensure_ascii=False))
    put("vocab.bpe", "#version: 0.2\n" + "".join("%s %s\n" % (piece[1:], piece[0]) for piece in pieces if len(piece) > 1))
    return ["tokenize", "-q", "--import", "encoder.json", "vocab.bpe", "-o", "out.json"]


# GGUF and other files of models.

def gguf(pairs, tensors=b"", count=0):
    return b"GGUF" + struct.pack("<IQQ", 3, count, len(pairs)) + b"".join(pairs) + tensors


def gguf_text(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_texts(key, texts):
    return gguf_text(key) + struct.pack("<IIQ", 9, 8, len(texts)) + b"".join(map(gguf_text, texts))


def gguf_string(key, text):
    return gguf_text(key) + struct.pack("<I", 8) + gguf_text(text)


@case
def gguf_merges(n):
    pieces = ["<unk>", "<s>", "</s>"] + runs_of_letters(n, 256)
    numbers = b"".join(struct.pack("<f", -float(i)) for i in range(len(pieces)))
    kinds = struct.pack("<3I", 2, 3, 3) + struct.pack("<I", 1) * (len(pieces) - 3)
    return fuzz("gguf", gguf([
        gguf_string("general.architecture", "llama"), gguf_string("tokenizer.ggml.model", "llama"),
        gguf_texts("tokenizer.ggml.tokens", pieces),
        gguf_text("tokenizer.ggml.scores") + struct.pack("<IIQ", 9, 6, len(pieces)) + numbers,
        gguf_text("tokenizer.ggml.token_type") + struct.pack("<IIQ", 9, 5, len(pieces)) + kinds]))


@case
def gguf_keys(n):
    return fuzz("gguf", gguf([gguf_string("key.%d" % i, "x") for i in range(n // 40)]))


@case
def gguf_tensors(n):
    infos = b"".join(gguf_text("blk.%d" % i) + struct.pack("<IQIQ", 1, 0, 0, 0) for i in range(n // 44))
    return fuzz("gguf", gguf([gguf_string("general.architecture", "llama")], infos, n // 44))


def safetensors(header):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


@case
def safetensors_names(n):
    return fuzz("safetensors", safetensors({"t%d" % i: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(n // 70)}))


@case
def safetensors_shape(n):
    return fuzz("safetensors", safetensors({"t": {"dtype": "F32", "shape": [1] * (n // 3), "data_offsets": [0, 4]}}) + bytes(4))


@case
def config_layers(n):
    return fuzz("config_json", json.dumps({"model_type": "qwen3", "layer_types": ["full_attention"] * (n // 20), "num_hidden_layers": n // 20}))


@case
def config_members(n):
    return fuzz("config_json", json.dumps({"model_type": "llama", **{"m%d" % i: i for i in range(n // 16)}}))


@case
def adapter_ranks(n):
    return fuzz("adapter_config", json.dumps({"peft_type": "LORA", "r": 8, "lora_alpha": 8, "target_modules": ["q_proj"], "rank_pattern": {
        "model.layers.%d.q_proj" % i: 4 for i in range(n // 32)}}))


@case
def adapter_targets(n):
    return fuzz("adapter_config", json.dumps({"peft_type": "LORA", "r": 8, "lora_alpha": 8, "target_modules": [
        "layers.%d.q_proj" % i for i in range(n // 22)]}))


@case
def adapter_pattern(n):
    return fuzz("adapter_config", json.dumps({"peft_type": "LORA", "r": 8, "lora_alpha": 8, "target_modules": "(" * (n // 2) + ")" * (n // 2)}))


@case
def tensor_index(n):
    return fuzz("tensor_index", json.dumps({"weight_map": {"t%d" % i: "f%d.safetensors" % i for i in range(n // 32)}}))


@case
def pickle_lists(n):
    return fuzz("pickle", b"\x80\x02" + b"]" * n + b".")


@case
def pickle_nested(n):
    return fuzz("pickle", b"\x80\x02" + b"]" * (n // 2) + b"a" * (n // 2 - 1) + b".")


@case
def pickle_memo(n):
    return fuzz("pickle", b"\x80\x02" + b"".join(b"]r" + struct.pack("<I", i) + b"0" for i in range(n // 7)) + b"].")


@case
def pickle_shared(n):
    return fuzz("pickle", b"\x80\x02]q\x00" + b"(" + b"h\x00" * (n // 2) + b"l.")


# Chat templates: their own size, and that of the conversation.

@case
def template_nested(n):
    return fuzz("chat_template", "{{ " + "(" * n)


@case
def template_text(n):
    return fuzz("chat_template", "{# x #}{{ 1 }}" * (n // 14))


@case
def template_sum(n):
    return fuzz("chat_template", "{{ 'a'" + " + 'a'" * (n // 6) + " }}")


@case
def template_blocks(n):
    return fuzz("chat_template", "{% if true %}x{% endif %}" * (n // 25))


def template(source):
    def made(n):
        return fuzz("chat_template", "{% set t = " + repr("a" * n) + " %}" + source)
    return made


for name, source in {
        "find": "{{ t.find(t[:1000] + 'b') }}", "in": "{{ (t[:(t | length) // 2] + 'b') in t }}", "split": "{{ t.split('a') | length }}",
        "replace": "{{ t.replace('a', 'b') | length }}", "count": "{{ t.count(t[:50]) }}", "list": "{{ t | list | length }}",
        "join": "{{ t | list | join('-') | length }}", "reversed": "{{ (t | list | reverse | list) | length }}",
        "loop": "{% for c in t %}{{ loop.index }}{% endfor %}", "slices": "{% for c in t[:1000] %}{{ t[1:] | length }}{% endfor %}",
        "upper": "{{ t | upper | length }}", "strip": "{{ t.strip('a') | length }}", "format": "{{ ('%s' * 50) | length }}{{ t | tojson | length }}",
        "namespace": "{% set ns = namespace(x='') %}{% for c in t %}{% set ns.x = ns.x + c %}{% endfor %}"}.items():
    CASES["template_" + name] = template(source)


# Texts and their shards.

def documents(content, *more):
    return ["tokenize", "-q", "-j", "1", "-t", "bytes", *more, put("text", content), "-o", "out.shard.zst"]


@case
def lines(n):
    return documents("\n" * n, "--format", "lines")


@case
def jsonl_nested(n):
    return documents('{"text": "a", "x": ' + "[" * n + "\n", "--format", "jsonl")


@case
def jsonl_members(n):
    return documents("{" + "".join('"m%d": 1, ' % i for i in range(n // 12)) + '"text": "a"}\n', "--format", "jsonl")


@case
def jsonl_escapes(n):
    return documents('{"text": "' + "\\ud83d\\ude00" * (n // 12) + '"}\n', "--format", "jsonl")


@case
def jsonl_many(n):
    return documents('{"text": ""}\n' * (n // 13), "--format", "jsonl")


@case
def jsonl_bad(n):
    return documents('{"text": \n' * (n // 10), "--format", "jsonl", "--bad-lines", "skip")


@case
def wikitext(n):
    return documents(" = x = \n" * (n // 8), "--format", "wikitext")


@case
def wikitext_dashes(n):
    return documents(" @-@ " * (n // 5), "--format", "wikitext", "--detokenise")


@case
def separators(n):
    return documents("a" * n, "--document-separator", "a" * 200 + "b")


@case
def invalid(n):
    return documents(b"\xf0\x9f" * (n // 2), "--invalid", "replace")


@case
def learn_bpe(n):
    return ["tokenize", "-q", "-j", "1", "--learn", "bpe", "--vocab-size", "400", put("text", "a" * n), "-o", "out.json"]


@case
def learn_word(n):
    return ["tokenize", "-q", "-j", "1", "--learn", "word", put("text", " ".join("w%d" % i for i in range(n // 7))), "-o", "out.json"]


def chained(command, *more):
    return ["sh", "-c", '"$@" && exec ' + " ".join(more), "sh", *command]


@case
def shard_info(n):
    return chained(documents("x\n" * (n // 2), "--format", "lines"), "shard", "info", "out.shard.zst", "-o", "report")


@case
def shard_cat(n):
    return chained(documents("x\n" * (n // 2), "--format", "lines"), "shard", "cat", "--text", "out.shard.zst", "-o", "printed")


@case
def ngrams(n):
    return chained(documents("a" * n), "build-ngrams", "-q", "-j", "1", "out.shard.zst", "-o", "index")


@case
def bm25(n):
    return chained(documents("a b\n" * (n // 4), "--format", "lines"), "bm25-search", "build", "-q", "-j", "1", "out.shard.zst", "-o", "index")


@case
def parquet_columns(n):
    return documents(parquet_footer([(b"c%d" % i, None) for i in range(n // 12)]), "--format", "parquet")


@case
def parquet_groups(n):
    return documents(parquet_footer([(b"g", 1)] * (n // 8) + [(b"x", None)]), "--format", "parquet")


def parquet_footer(elements):
    """A file of no rows whose schema, in thrift's compact form, has these elements: name, and number of children or none."""
    def zigzag(number):
        return varint(number << 1)

    def element(name, children, root=False):
        kind = b"\x15" + zigzag(6) + b"\x25" if children is None else b"\x35"  # BYTE_ARRAY
        return kind + zigzag(0 if root else 1) + b"\x18" + varint(len(name)) + name + (
            b"" if children is None else b"\x15" + zigzag(children)) + b"\x00"
    top = sum(children is None for _, children in elements) if elements[0][1] is None else 1
    schema = element(b"r", top, True) + b"".join(element(*each) for each in elements)
    footer = b"\x15\x02\x19\xfc" + varint(1 + len(elements)) + schema + b"\x16\x00\x19\x0c\x00"
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


# Requests, settings and figures.

@case
def score_choices(n):
    return fuzz("score_request", json.dumps({"context": "a", "choices": ["b"] * (n // 5), "gold": 0}))


@case
def score_nested(n):
    return fuzz("score_request", '{"id": ' + "[" * n)


@case
def completion_prompts(n):
    return fuzz("completion", json.dumps({"prompt": [""] * (n // 4)}))


@case
def completion_bias(n):
    return fuzz("completion", json.dumps({"prompt": "a", "logit_bias": {str(i): 1 for i in range(n // 12)}}))


@case
def completion_stops(n):
    return fuzz("completion", json.dumps({"prompt": "a", "stop": ["a" * 20 + str(i) for i in range(n // 30)]}))


@case
def http_headers(n):
    return fuzz("http_request", "GET / HTTP/1.1\r\n" + "a: b\r\n" * (n // 6) + "\r\n")


@case
def http_spaces(n):
    return fuzz("http_request", "GET / HTTP/1.1\r\na:" + " " * n + "\r\n\r\n")


@case
def settings_nested(n):
    return ["tokenize", "--config", put("settings.toml", "a = " + "[" * n), "--print-config"]


@case
def settings_members(n):
    return ["tokenize", "--config", put("settings.toml", "".join("k%d = 1\n" % i for i in range(n // 12))), "--print-config"]


@case
def settings_tables(n):
    return ["tokenize", "--config", put("settings.toml", "a" + ".a" * (n // 2) + " = 1"), "--print-config"]


@case
def scores(n):
    head = "position\tdocument\ttoken\ttext\thead\tjoint\tmemory\tcache\tnats\n"
    rng = random.Random(1)
    put("a.tsv", head + "".join("%d\t%d\t5\tx\t1\t1\t-\t-\t%.3f\n" % (i, i, rng.random()) for i in range(n // 28)))
    return ["compare-ppl", "--json", "a.tsv", "a.tsv", "-o", "report"]


def repeated(target, file):
    """The bytes of a corpus' file again and again, behind each other."""
    with open(file, "rb") as opened:
        content = opened.read()
    return lambda n: fuzz(target, content * max(1, n // max(1, len(content))))


def corpora():
    folder = os.path.join(ROOT, "tests/fuzz/corpus")
    for target in sorted(os.listdir(folder)):
        files = sorted(os.listdir(os.path.join(folder, target)), key=lambda name: os.path.getsize(os.path.join(folder, target, name)))
        for name in [name for name in files if os.path.getsize(os.path.join(folder, target, name)) > 4][:2]:
            CASES["repeated_%s_%s" % (target, name[:12])] = repeated(target, os.path.join(folder, target, name))


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def cost(command):
    """User seconds, peak kilobytes and, if it is wrong, how it ended."""
    environment = {**os.environ, "TESSERA_ATTACK_RUNS": "0", "OMP_NUM_THREADS": "1"}
    with open("said", "wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment, preexec_fn=limit)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    with open("said", "rb") as said:
        tail = said.read()[-200:].decode(errors="replace")
    right = process.returncode in (0, 64, 65, 66, 69, 78)
    return used.ru_utime, used.ru_maxrss, "" if right else "exit %d: %s" % (process.returncode, tail)


def fault(name, n, memory_only):
    """What is wrong with a case, and whether it is its time. None: it cannot run here; "": nothing."""
    measured = []
    for size in (n // 64, n, 2 * n, 4 * n):
        with tempfile.TemporaryDirectory(dir=".") as folder:
            os.chdir(folder)
            command = CASES[name](size)
            if command is not None:
                measured.append(cost(command))
            os.chdir("..")
        if command is None:
            return None, False
        if measured[-1][2]:
            return "%d bytes: %s" % (size, measured[-1][2]), False
    def grows(numbers, small):
        first, one, two, four = numbers
        root = FACTOR ** 0.5
        return four - first > max(small, FACTOR * (one - first), root * (two - first), two - first + root * (two - one))
    figures = ", ".join("%.2f s %d MB" % (seconds, kilo >> 10) for seconds, kilo, _ in measured)
    if grows([kilo for _, kilo, _ in measured], KILOBYTES):
        return "memory grows faster than the input: " + figures, False
    if not memory_only and grows([seconds for seconds, _, _ in measured], SECONDS):
        return "time grows faster than the input: " + figures, True
    return "", False


def main(arguments):
    memory_only = "--memory" in arguments
    n = int(arguments[arguments.index("--bytes") + 1]) if "--bytes" in arguments else 1 << 18
    wanted = [a for a in arguments if not a.startswith("--") and not a.isdigit()]
    corpora()
    passed, failed, skipped = 0, 0, 0
    for name in CASES:
        if wanted and not any(name.startswith(beginning) for beginning in wanted):
            continue
        found, slow = fault(name, n, memory_only)
        if slow:  # once more, for a busy machine
            found, slow = fault(name, n, memory_only)
        if found is None:
            skipped += 1
            print("  SKIP %s: its fuzz target is not built" % name, flush=True)
        elif found:
            failed += 1
            print("  not ok %s: %s" % (name, found), flush=True)
        else:
            passed += 1
            print("  ok %s" % name, flush=True)
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
