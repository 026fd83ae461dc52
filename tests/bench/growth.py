#!/usr/bin/env python3
"""growth.py FOLDER [SIZE]: time and memory of growing indices, stores, searches and windows, with their exponents.

SIZE is small [the default, minutes], or full: 1e8 tokens of n-grams, 1e7 keys. Programs are looked for in PATH. FOLDER keeps texts
and models; FOLDER/growth.tsv has a line a size: what, size, seconds, MB, and the exponents of both from the size before: 1 is
linear, n log n is about 1.1. FOLDER/growth.svg is drawn where gnuplot is. What is quadratic by definition, attention over a
window and exact search, is expected to be. Memory is without pages of mapped files. Exit: 1 if an exponent from the first size
to the last exceeds what is expected by more than 0.25.
"""
import math
import os
import random
import shutil
import subprocess
import sys
import time

SIZES = {
    "small": {"ngrams": [10**6, 3 * 10**6, 10**7], "store": [10**5, 3 * 10**5, 10**6], "window": [512, 2048, 8192]},
    "full": {"ngrams": [3 * 10**6, 3 * 10**7, 10**8], "store": [10**5, 10**6, 10**7], "window": [512, 2048, 8192]},
}
# Of seconds and of memory; the last two are a text of one length, whose search and attention grow with the store and the window.
EXPECTED = {"ngrams": (1.15, 1), "store": (1.15, 1), "search": (1, 1), "window": (1, 1)}
WIDTH = 64


def text(tokens):
    """A file of so many letters: words by Zipf's law, so that n-grams repeat as a language's do."""
    name = f"text-{tokens}.txt"
    if not os.path.exists(name):
        draw = random.Random(1)
        words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(50000)]
        weights = [1 / (i + 1) for i in range(len(words))]
        left = tokens
        with open(name + ".new", "w") as file:
            while left > 0:
                part = (" ".join(draw.choices(words, weights, k=100000)) + "\n")[:left]
                left -= len(part)
                file.write(part)
        os.rename(name + ".new", name)
    return name


def measured(*command):
    """Seconds, and the peak of memory in MB."""
    begin, peak = time.monotonic(), 0
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while running.poll() is None:
        with open(f"/proc/{running.pid}/status") as status:
            peak = max([peak] + [int(line.split()[1]) for line in status if line.startswith("RssAnon")])
        time.sleep(0.01)
    if running.returncode:
        sys.exit(f"growth: {' '.join(command)}: exit {running.returncode}")
    return time.monotonic() - begin, peak / 1024


def model(name, *options):
    if not os.path.exists(f"{name}/model.safetensors"):
        command = ["train", "-q", "-t", "bytes", "--d-model", str(WIDTH), "--heads", "2", "--steps", "20", *options]
        subprocess.run([*command, "-o", name, text(10**5)], check=True)
    return name


def anew(name):
    shutil.rmtree(name, ignore_errors=True)
    return name


def rows(size):
    for n in SIZES[size]["ngrams"]:
        yield "ngrams", n, measured("build-ngrams", "-q", "-t", "bytes", text(n), "-o", anew("ngrams"))
    for n in SIZES[size]["store"]:
        store = ["--datastore", "store", "--combine", "interpolate"]
        small = model("small", "--layers", "1", "--segment", "64")
        yield "store", n, measured("build-datastore", "-q", "-m", small, text(n), "-o", anew("store"))
        yield "search", n, measured("eval-ppl", "-q", "-m", small, *store, text(5249))
    for n in SIZES[size]["window"]:
        wide = model("wide", "--layers", "2", "--context", "8192", "--segment", "8192", "--batch", "1")
        yield "window", n, measured("eval-ppl", "-q", "-m", wide, "--window", str(n), "--stride", str(n // 2), text(10**5))


def exponent(sizes, values):
    return math.log(values[1] / values[0]) / math.log(sizes[1] / sizes[0])


def main():
    folder, size = (sys.argv[1:] + ["small"])[:2] if len(sys.argv) in (2, 3) else ("", "")
    if size not in SIZES:
        sys.exit(__doc__)
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    made, too_fast = {}, []
    with open("growth.tsv", "w") as table:
        print("what\tsize\tseconds\tMB\texponent of seconds\texponent of MB", file=table)
        for what, n, row in rows(size):
            before = made.setdefault(what, [])
            before.append((n, row))
            exponents = [exponent(*zip(*((s, r[i]) for s, r in before[-2:]))) for i in range(2)] if before[1:] else []
            cells = [f"{row[0]:.2f}", f"{row[1]:.0f}", *(f"{e:.2f}" for e in exponents)]
            print(what, n, *cells, *["-"] * (4 - len(cells)), sep="\t", file=table, flush=True)
            print(what, n, *cells, sep="\t", flush=True)
    for what, of in made.items():
        for i, kind in enumerate(["seconds", "memory"]):
            whole = exponent((of[0][0], of[-1][0]), (of[0][1][i], of[-1][1][i]))
            if whole > EXPECTED[what][i] + 0.25:
                too_fast.append(f"{what}: {kind} grows by {whole:.2f}")
    if shutil.which("gnuplot"):
        curves = ", ".join(
            f'"growth.tsv" using 2:(strcol(1) eq "{what}" ? ${3 + i} : 1/0) with linespoints title "{what}, {unit}"'
            for what in made for i, unit in enumerate(["s", "MB"]))
        script = f'set term svg; set output "growth.svg"; set logscale xy; set key outside; set datafile separator tab; plot {curves}'
        subprocess.run(["gnuplot", "-e", script], check=True)
    if too_fast:
        sys.exit("growth: " + "; ".join(too_fast))


main()
