"""make.py: writes repeated.parquet, with pyarrow: 64 rows of one word of 8 MB, in three encodings."""
import pathlib

import pyarrow
import pyarrow.parquet

word, count = "a" * 8_000_000, 64
encoded = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * count, pyarrow.int32()), pyarrow.array([word]))
texts = pyarrow.array([word] * count, pyarrow.large_string())
pyarrow.parquet.write_table(
    pyarrow.table({"category": encoded, "pages": texts, "delta": texts}),
    pathlib.Path(__file__).parent / "repeated.parquet",
    compression="zstd", compression_level=19, use_dictionary=["category", "pages"], column_encoding={"delta": "DELTA_BYTE_ARRAY"})
