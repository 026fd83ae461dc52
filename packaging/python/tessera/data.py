"""What programs wrote, as numpy arrays and pandas frames."""

from __future__ import annotations

import io
import json
import math
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional

from ._run import PathLike, run

if TYPE_CHECKING:
    import numpy
    import pandas


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError("arrays of tessera need numpy; install it with pip") from error
    return numpy


class Shard:
    """A shard of tokens, pairs, an order or vectors, shard(5).

    ``array`` is (elements,) of u1, u2, u4 or u8, or for vectors (rows, width) of f4. Reading it checks every byte; a shard
    that is damaged or cut short raises ProgramFailed, which says where.
    """

    def __init__(self, path: PathLike):
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"Shard({str(self.path)!r})"

    @cached_property
    def info(self) -> Dict[str, Any]:
        """What ``shard info --json`` says: kind, dtype, elements, documents, bytes, words, fingerprint, provenance, ..."""
        return run("shard", "info", "--json", "--", os.fspath(self.path), progress=False, answers=(0,)).record

    def __len__(self) -> int:
        """Elements; of vectors rows."""
        return int(self.info["elements"]) // int(self.info.get("width", 1))

    @cached_property
    def array(self) -> "numpy.ndarray":
        """All elements, read once."""
        data = run("shard", "export", "--output-format=npy", "--", os.fspath(self.path), progress=False, answers=(0,)).data
        array: "numpy.ndarray" = _numpy().load(io.BytesIO(data), allow_pickle=False)
        return array

    @cached_property
    def starts(self) -> "numpy.ndarray":
        """(documents + 1,) int64: where each document begins in ``array`` (of vectors: its row), and the end."""
        np = _numpy()
        data = run("shard", "cat", "--by-document", "--", os.fspath(self.path), progress=False, answers=(0,)).data
        sizes = [line.count(b" ") + 1 if line else 0 for line in data.split(b"\n")[:-1]]
        starts: "numpy.ndarray" = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        starts //= int(self.info.get("width", 1))
        return starts

    def documents(self) -> Iterator["numpy.ndarray"]:
        """The elements of each document, as views of ``array``."""
        for begin, end in zip(self.starts[:-1], self.starts[1:]):
            yield self.array[begin:end]

    def text(self) -> str:
        """The text of all documents, by the tokenizer in the shard, each with a newline at its end."""
        return run("shard", "cat", "--text", "--", os.fspath(self.path), progress=False, answers=(0,)).text


class Store:
    """A datastore, store(5): keys and the tokens that followed them. Its arrays are mapped from their files."""

    def __init__(self, path: PathLike):
        self.path = Path(path)
        self.info: Dict[str, Any] = json.loads((self.path / "store.json").read_text())
        if self.info.get("format") != "tessera-store" or self.info.get("version") != 1:
            raise ValueError(f"{self.path}: not a store of version 1")

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def __len__(self) -> int:
        return int(self.info["rows"])

    def _array(self, name: str, rows: int) -> "numpy.ndarray":
        array: "numpy.ndarray" = _numpy().load(self.path / self.info["files"][name], mmap_mode="r", allow_pickle=False)
        return array[:rows]

    @cached_property
    def keys(self) -> "numpy.ndarray":
        """(rows, width) float16: a key a row, in the order of the text."""
        return self._array("keys", len(self))

    @cached_property
    def values(self) -> "numpy.ndarray":
        """(rows,) int32: the token that followed."""
        return self._array("values", len(self))

    @cached_property
    def documents(self) -> "numpy.ndarray":
        """(documents,) int64: the first row of each document."""
        return self._array("documents", int(self.info["documents"]))

    @cached_property
    def places(self) -> Optional["numpy.ndarray"]:
        """(rows,) int64: the position of each row in its text, of a store that leaves positions out; else None."""
        return self._array("places", len(self)) if self.info["files"].get("places") else None

    @cached_property
    def weights(self) -> Optional["numpy.ndarray"]:
        """(rows,) int32: for how many entries each row stands, of a store whose entries were merged; else None."""
        return self._array("weights", len(self)) if self.info["files"].get("weights") else None


class Table(Mapping[str, "numpy.ndarray"]):
    """Columns by name, each a numpy array of one length. A number that is not there is NaN."""

    def __init__(self, columns: Dict[str, "numpy.ndarray"]):
        self._columns = columns

    def __getitem__(self, name: str) -> "numpy.ndarray":
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """How many columns there are; ``rows`` says how many rows."""
        return len(self._columns)

    def __repr__(self) -> str:
        return f"Table({self.rows} rows: {', '.join(self)})"

    @property
    def rows(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def where(self, name: str) -> "Table":
        """The rows in which the column ``name`` has a number."""
        np = _numpy()
        keep = ~np.isnan(self[name])
        return Table({key: column[keep] for key, column in self.items()})

    def pandas(self) -> "pandas.DataFrame":
        """The same as a DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("Table.pandas() needs pandas; install it with pip") from error
        return pandas.DataFrame(dict(self._columns))


def _column(values: List[Any]) -> "numpy.ndarray":
    """Whole numbers as int64, numbers as float64, anything else as it is."""
    np = _numpy()
    column: "numpy.ndarray"
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        column = np.array(values, np.int64)
    elif all(value is None or isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        column = np.array([math.nan if value is None else value for value in values], np.float64)
    else:
        column = np.empty(len(values), object)
        column[:] = values
    return column


def _from_records(records: Iterable[Dict[str, Any]]) -> Table:
    rows = list(records)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return Table({name: _column([row.get(name) for row in rows]) for name in names})


def _number(text: str) -> Any:
    if text == "-":
        return None
    try:
        return int(text)
    except ValueError:
        return float(text)


def read_table(path: PathLike, text: Iterable[str] = ()) -> Table:
    """JSON lines, or a file of tabs whose first line names the columns, as a table. Lines before that which begin with # are skipped.

    A column that holds a text anywhere is one of texts; those named in ``text`` always are.
    """
    content = Path(path).read_text(encoding="utf-8")
    if content.lstrip().startswith("{"):
        return _from_records(json.loads(line) for line in content.splitlines() if line.strip())
    lines = content.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    first = next((i for i, line in enumerate(lines) if not line.startswith("#")), None)
    if first is None:
        raise ValueError(f"{path}: empty")
    names = lines[first].split("\t")
    rows = [line.split("\t") for line in lines[first + 1 :]]
    for number, row in enumerate(rows, first + 2):
        if len(row) != len(names):
            raise ValueError(f"{path}:{number}: {len(row)} columns, not {len(names)}")
    columns: Dict[str, Any] = {}
    texts = set(text)
    for i, name in enumerate(names):
        column = [row[i] for row in rows]
        try:
            columns[name] = _column(column if name in texts else [_number(value) for value in column])
        except ValueError:
            columns[name] = _column(column)
    return Table(columns)


def read_tokens(path: PathLike) -> Table:
    """What ``eval_ppl(per_token=path)`` wrote: of each scored token its position, document, id and text, -log p in nats by the
    model and by each memory (NaN: not used, or it saw nothing), and altogether (``nats``)."""
    return read_table(path, text=("text",))


def _in_folder(path: PathLike, name: str) -> Path:
    path = Path(path)
    return path / name if path.is_dir() else path


def read_metrics(model: PathLike) -> Table:
    """metrics.jsonl of a model's folder: loss, perplexity, lr and gradient_norm by step, and valid_loss where there was a
    validation. ``read_metrics(model).where("valid_loss")`` has the validations."""
    return read_table(_in_folder(model, "metrics.jsonl"))


def read_timings(model: PathLike) -> Table:
    """timings.jsonl of a model's folder: what depends on the clock, by step."""
    return read_table(_in_folder(model, "timings.jsonl"))
