"""What the scripts beside it begin with: transformers without network and notes, exit 77 without the modules they need."""

import contextlib
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"


@contextlib.contextmanager
def modules_or_skip():
    """Around imports: where one is missing, prints which and ends with 77."""
    try:
        yield
    except ImportError as error:
        print(f"no module {error.name}")
        sys.exit(77)
