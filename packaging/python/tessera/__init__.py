"""Tessera's programs and files in Python.

Each program is a function: its files are the arguments, its options are keywords (``d_model`` is ``--d-model``), and it runs
the installed program in a process of its own. Nothing of PyTorch is loaded into Python.

    import tessera

    tessera.tokenize("book.txt", learn="bpe", vocab_size=2000, output="tokenizer.json")
    tessera.tokenize("book.txt", tokenizer="tokenizer.json", output="book.shard.zst")
    tessera.train("book.shard.zst", output="model", steps=200)
    report = tessera.eval_ppl("book.shard.zst", model="model", per_token="tokens.tsv").record
    report["perplexity"]

What the programs write is read by:

    Shard("book.shard.zst").array       token ids, an order, or vectors
    Store("store").keys                 keys, values and documents of a datastore, mapped from its files
    read_metrics("model").pandas()      losses by step
    read_tokens("tokens.tsv")           of each token its text, and what each memory gave it

``help(tessera.train)`` lists every option. Arrays need numpy, ``.pandas()`` needs pandas.
"""

from ._run import ProgramFailed, Result, program_path, run
from .data import Shard, Store, Table, read_metrics, read_table, read_timings, read_tokens
from .programs import *  # noqa: F403
from .programs import __all__ as _programs
from .programs import __version__

__all__ = [
    "ProgramFailed",
    "Result",
    "Shard",
    "Store",
    "Table",
    "__version__",
    "program_path",
    "read_metrics",
    "read_table",
    "read_timings",
    "read_tokens",
    "run",
    *_programs,
]
