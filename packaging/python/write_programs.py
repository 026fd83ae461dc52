"""write_programs.py FOLDER VERSION: on stdout tessera/programs.py, a function for each program in FOLDER.

Names, values, defaults and help are what each program's --print-flags says, so that they cannot drift from it.
"""

import keyword
import pathlib
import subprocess
import sys

# What Python says in its own way, or has no use for.
LEFT_OUT = {"help", "version", "build-info", "print-flags", "print-config", "force", "json"}
OWN = {"files", "input", "progress", "json"}
HEAD = '''"""Each program as a function. Made by packaging/python/write_programs.py of what --print-flags says.

``files`` are the program's arguments, ``input`` is its stdin, ``progress`` as of ``tessera.run``. Every other keyword is an
option: None leaves it to the program. A list gives an option several times. With ``json`` figures are JSON lines, which
``Result.record`` and ``Result.records`` read. An exit status above 1 raises ProgramFailed.
"""

from __future__ import annotations

from typing import Literal, Optional, Union

from ._run import Integer, Number, PathLike, Progress, Result, Text, call

__version__ = "{version}"
'''


class Option:
    def __init__(self, names, value, default, help):
        long = [name for name in names if name.startswith("--")]
        self.flag = long[0]
        self.name = self.flag[2:]
        self.switch = not value
        self.no = next((name for name in long if name.startswith("--no-")), "")
        self.value, self.default, self.help = value, default, help
        self.keyword = self.name.replace("-", "_")
        if keyword.iskeyword(self.keyword):
            self.keyword += "_"

    def type(self):
        if self.switch:
            return "Optional[bool]"
        if "|" in self.value:
            choices = self.value.split("|")
            literal = "Literal[" + ", ".join(f'"{one}"' for one in choices) + "]"
            return f"Union[{literal}, bool, None]" if {"on", "off"} <= set(choices) else f"Optional[{literal}]"
        kinds = {"N": "Integer", "BYTES": "Integer", "X": "Number"}
        return f"Optional[{kinds.get(self.value, 'Text')}]"

    def flags(self):
        return (self.flag, self.no) if self.switch else (self.flag,)


def tables(program):
    """(command, its summary, what its arguments are, its options) of each command; "" is a program without commands."""
    rows = subprocess.run([program, "--print-flags"], check=True, capture_output=True, text=True).stdout.splitlines()
    found = {}
    for row in rows:
        command, names, value, default, help, _ = row.split("\t")
        if not names:
            found.setdefault(command, [help, "", []])[0] = help
            continue
        entry = found.setdefault(command, ["", "", []])
        if not names.startswith("-"):
            entry[1] += ("; " if entry[1] else "") + (f"{names}: " if names != "FILE" else "") + help
        elif any(name.startswith("--") for name in names.split(",")):
            option = Option(names.split(","), value, default, help)
            if option.name not in LEFT_OUT:
                entry[2].append(option)
    if len(found) > 1:
        found.pop("", None)
    return [(command, *entry) for command, entry in found.items()]


def escaped(text):
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def function(program, summary, command, about, arguments, options):
    name = "_".join(filter(None, [program, command])).replace("-", "_")
    taken = [option.keyword for option in options]
    assert not OWN & set(taken) and len(set(taken)) == len(taken), (program, command, sorted(taken))
    lines = ["", "", f"def {name}("]
    lines += ["    *files: PathLike,"] if arguments else ["    *,"]
    lines += ["    input: Union[bytes, str, None] = None,", "    progress: Progress = None,", "    json: bool = True,"]
    lines += [f"    {option.keyword}: {option.type()} = None," for option in options]
    about = (about or summary).rstrip(".")
    lines += [") -> Result:", f'    """{escaped(about[:1].upper() + about[1:])}: {program}(1){" " + command if command else ""}.', ""]
    lines += ["    Args:"]
    if arguments:
        lines += [f"        *files: {escaped(arguments)}"]
    for option in options:
        default = "" if not option.default or option.default in option.help else f" [{option.default}]"
        lines += [f"        {option.keyword}: {escaped(option.help)}{escaped(default)}"]
    lines += ['    """', f"    options = {{{', '.join(repr(k) + ': ' + k for k in taken)}}}".replace("'", '"')]
    flags = ", ".join(f"{option.keyword!r}: {option.flags()!r}" for option in options).replace("'", '"')
    lines += [f"    flags = {{{flags}}}"]
    files = "files" if arguments else "()"
    lines += [f'    options["json_"], flags["json_"] = json, ("--json", "")']
    lines += [f'    return call("{program}", "{command}", {files}, options, flags, input, progress)']
    return name, lines


def main(folder, version):
    names, text = [], []
    listed = subprocess.run([f"{folder}/tessera", "--help"], check=True, capture_output=True, text=True).stdout
    for program in sorted(pathlib.Path(folder).iterdir()):
        if program.name == "tessera" or program.suffix or not program.is_file():
            continue
        summary = next((line.split(None, 1)[1] for line in listed.splitlines() if line.split()[:1] == [program.name]), program.name)
        for command, about, arguments, options in tables(program):
            name, lines = function(program.name, summary, command, about, arguments, options)
            names.append(name)
            text += lines
    print(HEAD.replace("{version}", version))
    print("__all__ = [\n" + "".join(f'    "{name}",\n' for name in names) + "]")
    print("\n".join(text))


if __name__ == "__main__":
    main(*sys.argv[1:])
