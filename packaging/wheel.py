"""wheel.py TREE VERSION GLIBC FOLDER: the tree of tools/dist as a wheel in FOLDER, whose path is printed.

Programs are its scripts, lib/ and share/ go to the environment's own. Beside them is the module tessera (packaging/python),
which runs the programs and reads their files; it needs numpy for arrays, the programs need no other wheel.
The tag says the oldest C library that the programs run with, and pip refuses the wheel where it is older.
"""

import base64
import hashlib
import pathlib
import subprocess
import sys
import zipfile

NAME = "tessera_lm"
METADATA = """Metadata-Version: 2.1
Name: tessera-lm
Version: {version}
Summary: Programs for language models that remember
License: see share/doc/tessera
Requires-Python: >=3.8
Requires-Dist: numpy
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
"""
WHEEL = """Wheel-Version: 1.0
Generator: tessera
Root-Is-Purelib: false
Tag: {tag}
"""


def contents(tree, data):
    """(name in the wheel, file) of all that is in the tree."""
    for file in sorted(tree.rglob("*")):
        if not file.is_file():
            continue
        path = file.relative_to(tree)
        if path.parts[:3] == ("lib", "tessera", "glibc"):
            continue
        if path.parts[0] == "libexec":
            yield f"{data}/scripts/{path.name}", file
        elif path.parts[0] in ("lib", "share"):
            yield f"{data}/data/{path}", file


def module(tree, version):
    """(name in the wheel, text) of the module tessera; its functions are made of what the tree's programs say."""
    here = pathlib.Path(__file__).parent / "python"
    for file in sorted((here / "tessera").iterdir()):
        if file.suffix in (".py", ".typed"):
            yield f"tessera/{file.name}", file.read_bytes()
    programs = [sys.executable, here / "write_programs.py", f"{tree}/libexec/tessera", version]
    yield "tessera/programs.py", subprocess.run(programs, check=True, stdout=subprocess.PIPE).stdout


def main(tree, version, glibc, folder):
    tag = f"py3-none-manylinux_{glibc.replace('.', '_')}_x86_64"
    target = pathlib.Path(folder) / f"{NAME}-{version}-{tag}.whl"
    info = f"{NAME}-{version}.dist-info"
    record = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:

        def add(name, text, mode):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, text, compresslevel=9)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(text)}")

        for name, file in contents(pathlib.Path(tree), f"{NAME}-{version}.data"):
            add(name, file.read_bytes(), 0o755 if file.stat().st_mode & 0o100 else 0o644)
        for name, text in module(tree, version):
            add(name, text, 0o644)
        add(f"{info}/METADATA", METADATA.format(version=version).encode(), 0o644)
        add(f"{info}/WHEEL", WHEEL.format(tag=tag).encode(), 0o644)
        record.append(f"{info}/RECORD,,")
        wheel.writestr(f"{info}/RECORD", "\n".join(record) + "\n")
    print(target)


main(*sys.argv[1:])
