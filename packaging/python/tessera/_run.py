"""How a program is found, run and heard."""

from __future__ import annotations

import codecs
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

PathLike = Union[str, "os.PathLike[str]"]
Progress = Union[bool, Callable[[str], None], None]
# An option's value: sizes may be texts ("100K", "2G"), and several values are given one after the other.
Integer = Union[int, str, Sequence[Union[int, str]]]
Number = Union[float, str, Sequence[Union[float, str]]]
Text = Union[PathLike, Sequence[PathLike]]

_MESSAGE_END = re.compile(r"[\r\n]")
_CLEAR = "\x1b[K"


class ProgramFailed(RuntimeError):
    """A program ended with an exit status that is no answer.

    ``program`` is its name, ``code`` its exit status (negative: ended by that signal) and ``notes`` what it wrote to stderr.
    Exit status 75 says that it was stopped with everything saved: the same call resumes.
    """

    def __init__(self, program: str, code: int, notes: Sequence[str]):
        self.program = program
        self.code = code
        self.notes = list(notes)
        said = [note for note in notes if note.strip()]
        super().__init__(said[-1] if said else f"{program}: ended with status {code}")


@dataclass(frozen=True)
class Result:
    """What a program wrote.

    ``data`` is its stdout, ``notes`` the lines of its stderr without progress. ``code`` is 0, or 1 where the answer is no
    (``compare_ppl(..., fail_unless_better=True)``).
    """

    program: str
    code: int
    data: bytes = field(repr=False)
    notes: List[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.code == 0

    @property
    def text(self) -> str:
        """``data`` as text; bytes that are no UTF-8 are replaced."""
        return self.data.decode("utf-8", "replace")

    @property
    def records(self) -> List[Dict[str, Any]]:
        """The JSON lines of ``data``, or those of ``notes`` where a program's stdout is data or empty."""
        lines = [line for line in self.data.splitlines() if line.strip()]
        if lines and all(line.startswith(b"{") for line in lines):
            return [json.loads(line) for line in lines]
        return [json.loads(note) for note in self.notes if note.startswith("{")]

    @property
    def record(self) -> Dict[str, Any]:
        """The first of ``records``; ValueError if there is none."""
        records = self.records
        if not records:
            raise ValueError(f"{self.program}: wrote no record")
        return records[0]


def program_path() -> str:
    """The program ``tessera``, which runs all others.

    It is looked for in the folder that the environment variable TESSERA_BIN names, in the folders where pip puts scripts,
    and in PATH. FileNotFoundError says so where there is none.
    """
    folders = []
    if os.environ.get("TESSERA_BIN"):
        folders.append(Path(os.environ["TESSERA_BIN"]))
    else:
        folders += [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
        if "posix_user" in sysconfig.get_scheme_names():
            folders.append(Path(sysconfig.get_path("scripts", "posix_user")))
        folders.append(Path(__file__).resolve().parents[1] / "bin")
    for folder in folders:
        if os.access(folder / "tessera", os.X_OK):
            return str(folder / "tessera")
    found = None if os.environ.get("TESSERA_BIN") else shutil.which("tessera")
    if not found:
        raise FileNotFoundError("tessera is neither in " + ", ".join(map(str, folders)) + " nor in PATH; set TESSERA_BIN to its folder")
    return found


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


class _Listener:
    """Splits what a program writes to stderr into notes and progress, and hands both on."""

    def __init__(self, hand_on: Optional[Callable[[str, bool], None]]):
        self.notes: List[str] = []
        self._hand_on = hand_on
        self._pending = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def hear(self, piece: bytes, last: bool = False) -> None:
        self._pending += self._decoder.decode(piece, last)
        while True:
            end = _MESSAGE_END.search(self._pending)
            if not end:
                break
            line, self._pending = self._pending[: end.start()], self._pending[end.end() :]
            self._say(line, is_note=end.group() == "\n")
        if last:
            self._say(self._pending, is_note=True)
            self._pending = ""
        elif self._pending.startswith(_CLEAR) and len(self._pending) > len(_CLEAR):
            self._say(self._pending, is_note=False)
            self._pending = ""

    def _say(self, line: str, is_note: bool) -> None:
        line = line.replace(_CLEAR, "").strip()
        if not line:
            return
        if is_note:
            self.notes.append(line)
        if self._hand_on:
            self._hand_on(line, is_note)


def _printer() -> Callable[[str, bool], None]:
    """Notes as lines, progress as one line that is written over."""
    width = 0

    def show(line: str, is_note: bool) -> None:
        nonlocal width
        print("\r" + line.ljust(width), end="\n" if is_note else "", file=sys.stderr, flush=True)
        width = 0 if is_note else len(line)

    return show


def _open_stderr(lively: bool) -> Tuple[int, int]:
    """(what is read here, what the program writes to). A pseudo-terminal has progress five times a second, a pipe less often."""
    if lively:
        try:
            import fcntl
            import pty
            import struct
            import termios
            import tty

            ours, theirs = pty.openpty()
            tty.setraw(theirs)
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 120, 0, 0))
            return ours, theirs
        except (ImportError, OSError):
            pass
    return os.pipe()


def _listen(descriptor: int, listener: _Listener) -> None:
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # the other end of a pseudo-terminal was closed
            piece = b""
        if not piece:
            break
        listener.hear(piece)
    listener.hear(b"", last=True)
    os.close(descriptor)


def run(
    program: str,
    *arguments: str,
    input: Union[bytes, str, None] = None,
    progress: Progress = None,
    answers: Sequence[int] = (0, 1),
) -> Result:
    """Runs ``tessera PROGRAM ARGUMENT...`` to its end.

    ``input`` is its stdin. ``progress``: True shows notes and progress on stderr, False shows nothing, a function is called
    with each line of either; None shows them at a terminal and in a notebook. An exit status that is not in ``answers``
    raises ProgramFailed. An interrupt (Ctrl-C, a notebook's stop) is passed on: a training saves and ends.
    """
    hand_on: Optional[Callable[[str, bool], None]] = None
    if callable(progress):
        listen_to = progress
        hand_on = lambda line, _: listen_to(line)  # noqa: E731
    elif progress or (progress is None and (sys.stderr.isatty() or _in_notebook())):
        hand_on = _printer()
    listener = _Listener(hand_on)
    read_end, write_end = _open_stderr(lively=hand_on is not None)
    try:
        process = subprocess.Popen(
            [program_path(), program, *arguments],
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=write_end,
        )
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    hearing = threading.Thread(target=_listen, args=(read_end, listener), daemon=True)
    hearing.start()
    if isinstance(input, str):
        input = input.encode()
    try:
        data, _ = process.communicate(input)
    except BaseException:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait()
        hearing.join()
        raise
    hearing.join()
    if process.returncode not in answers:
        raise ProgramFailed(program, process.returncode, listener.notes)
    return Result(program, process.returncode, data or b"", listener.notes)


def _as_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _is_many(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or type(value).__module__ == "numpy" and getattr(value, "ndim", 0) > 0


def call(
    program: str,
    command: str,
    files: Sequence[PathLike],
    options: Dict[str, Any],
    flags: Dict[str, Tuple[str, ...]],
    input: Union[bytes, str, None],
    progress: Progress,
) -> Result:
    """What the functions of ``programs`` do. ``flags`` has for each keyword its flag; of a switch also what says no, or ""."""
    arguments = [command] if command else []
    for keyword, value in options.items():
        if value is None:
            continue
        yes, *no = flags[keyword]
        if no:
            arguments += [yes] if value else list(filter(None, no))
        elif isinstance(value, bool):
            arguments.append(f"{yes}={'on' if value else 'off'}")
        elif _is_many(value):
            arguments += [f"{yes}={_as_text(one)}" for one in value]
        else:
            arguments.append(f"{yes}={_as_text(value)}")
    if files:
        arguments += ["--", *map(_as_text, files)]
    return run(program, *arguments, input=input, progress=progress)
