"""ngrams_peer.py tokengrams|infini-gram|kenlm FOLDER TYPES

tokengrams, infini-gram: tokens a second that it indexes of FOLDER/text.bin, and distributions a second that it gives for the
suffixes in FOLDER/queries (a line: how many tokens follow, the suffix). Exit 1 if it counts otherwise (infini-gram: the first 500 of them).
kenlm: tokens a second of an interpolated Kneser-Ney model of five words, estimated from the first 200,000 tokens, which
examples/memories/kneser_ney.py writes, and probabilities a second of the same suffixes' last words.
Both figures go into FOLDER/peer. Exit 69 if the module is not there.
"""

import os
import subprocess
import sys
import time

what, folder, types = sys.argv[1], sys.argv[2], int(sys.argv[3])
text = folder + "/text.bin"
tokens = os.path.getsize(text) / 2
MARK, EVERYTHING = types - 1, 10**9


def seconds_of(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def queries():
    with open(folder + "/queries", encoding="ascii") as file:
        lines = [[int(word) for word in line.split()] for line in file]
    return [line[0] for line in lines], [line[1:] for line in lines]


def expect(found):
    counts, suffixes = queries()
    for count, suffix, answer in zip(counts, suffixes, found):
        if answer != count:
            print(f"{suffix}: {answer}, not {count}", file=sys.stderr)
            sys.exit(1)


def warm(ask):
    """Of two times the second, and what was found."""
    ask()
    return seconds_of(ask)


def tokengrams():
    from tokengrams import MemmapIndex

    seconds, index = seconds_of(lambda: MemmapIndex.build(text, folder + "/text.idx", types))
    suffixes = queries()[1]
    asked, found = warm(lambda: [index.count_next(suffix) for suffix in suffixes])
    # What follows within a document: the mark is the last type.
    expect(sum(counts[:MARK]) for counts in found)
    return tokens / seconds, len(suffixes) / asked


def infini_gram():
    from argparse import Namespace

    import numpy

    os.environ["TQDM_DISABLE"] = "1"
    from infini_gram import indexing
    from infini_gram.engine import InfiniGramEngine

    # Its mark, 65,535, stands before each document.
    ids = numpy.fromfile(text, dtype=numpy.uint16)
    ends = numpy.flatnonzero(ids == MARK)
    starts = numpy.concatenate(([0], ends + 1))[: len(ends) + (ids[-1] != MARK)]
    out = numpy.roll(ids, 1) if ids[-1] == MARK else numpy.concatenate(([MARK], ids)).astype(numpy.uint16)
    out[out == MARK] = 65535
    save = folder + "/infini-gram"
    os.makedirs(save)
    out.tofile(save + "/tokenized.0")
    (starts.astype(numpy.uint64) * 2).tofile(save + "/offset.0")
    here = os.getcwd()
    options = Namespace(save_dir=save, temp_dir=save, worker_id=0, shards=1, workers=1, cpus=1, mem=8, token_width=2)
    seconds, _ = seconds_of(lambda: indexing.build_sa(options))
    os.chdir(here)
    suffixes = queries()[1]
    marks = (MARK, 65535)
    # Counts are whole where nothing bounds them; by default it looks at 1,000 occurrences, which is much faster.
    whole = InfiniGramEngine(index_dir=save, eos_token_id=MARK, vocab_size=types, max_support=EVERYTHING)
    found = [whole.ntd(prompt_ids=suffix) for suffix in suffixes[:500]]
    engine = InfiniGramEngine(index_dir=save, eos_token_id=MARK, vocab_size=types)
    asked, _ = warm(lambda: [engine.ntd(prompt_ids=suffix) for suffix in suffixes])
    expect(sum(each["cont_cnt"] for token, each in one["result_by_token_id"].items() if token not in marks) for one in found)
    return tokens / seconds, len(suffixes) / asked


def kenlm():
    import kenlm as module
    import numpy

    ids = numpy.fromfile(text, dtype=numpy.uint16, count=200_000)
    with open(folder + "/words", "w", encoding="ascii") as file:
        for document in numpy.split(ids, numpy.flatnonzero(ids == MARK)):
            print(*(token for token in document if token != MARK), file=file)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/memories/kneser_ney.py")
    arpa = folder + "/words.arpa"
    seconds, _ = seconds_of(lambda: subprocess.run([sys.executable, script, "estimate", "5", folder + "/words", arpa], check=True))
    config = module.Config()
    config.show_progress, config.arpa_complain = False, module.ARPALoadComplain.NONE
    model = module.Model(arpa, config)
    contexts = [[str(token) for token in suffix[-5:]] for suffix in queries()[1] if suffix]

    def ask():
        for context in contexts:
            state, after = module.State(), module.State()
            model.NullContextWrite(state)
            for word in context:
                model.BaseScore(state, word, after)
                state, after = after, state

    asked, _ = warm(ask)
    return len(ids) / seconds, sum(map(len, contexts)) / asked


try:
    figures = {"tokengrams": tokengrams, "infini-gram": infini_gram, "kenlm": kenlm}[what]()
except ImportError:
    print(f"ngrams_bench: no python module {what} for {sys.executable}: its figures are left out", file=sys.stderr)
    sys.exit(69)
with open(folder + "/peer", "w", encoding="ascii") as file:
    print(*figures, file=file)
