#!/usr/bin/env python3
"""The passages of a folder of notes, for indices, and the lines of them that an answer is from, for ask.

    passages.py read FOLDER              a line for each passage: file, line, text, places
    passages.py cite FOLDER TABLE        [file:line] for each passage of sample's answer (JSON on stdin); TABLE is what read printed

Read are *.txt, *.md, *.html and *.htm, also in linked folders; a file with two names is read once. A passage is a paragraph or a
row of a table, behind its headings and its columns if they are short. A title (# ...) of Markdown is left out if text follows it.
A long paragraph is cut after sentences. The places are LINE:OFFSET of each sentence in the text. What is not read is said on
stderr. The other bytes of a text that is not UTF-8 pass as they are; a control character in a name becomes a question mark.
"""

import bisect
import html.parser
import itertools
import json
import os
import re
import signal
import stat
import sys

LONG = 600  # characters after which a passage ends with its sentence
SHORT = 100  # what may stand in front of another passage

# Up to a full stop before a space, or the line before an item of a list. What has neither ends at a space.
END = r"""[.!?…]["')\]”’»]*(?=\s)|(?=\n[ \t]*(?:[-*+•]|\d+[.)])\s)|\Z"""
SENTENCE = re.compile(rf"\S(?s:.{{0,{LONG}}}?(?:{END})|.{{{LONG}}}.*?(?=\s|\Z))")

# Tables: the line below the columns. Markdown: headings, and the first and last line of code.
RULE = re.compile(r"(?=.*[|+])[\s|:+]*-[-\s|:+]*$")
HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
FENCE = re.compile(r"\s*(```|~~~)[^`]*$")

# Elements of HTML that end a paragraph, and those without text.
BLOCKS = set(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hr legend li main menu nav ol option p pre section summary tbody tfoot thead ul".split()
)
SILENT = {"script", "style", "title"}
COLUMNS = 7  # the level of a table's columns, below all headings


def shown(name):
    return re.sub(r"[\0-\x1f\x7f]", "?", name)


def say(name, text):
    print(f"ask: {shown(name)}: {text}", file=sys.stderr)


# Both readers give blocks (kind, pieces). A piece is (line, text). Kinds are "text", "columns" and "row" of a table, whose cells
# "|" separates, "table" before one, and the level of a heading.


def text_blocks(text, markdown):
    block, kind, fence = [], "text", ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = FENCE.match(line) if markdown else None
        heading = HEADING.match(line) if markdown and not fence else None
        if mark and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        elif not line.strip() or heading:
            yield kind, block
            block, kind = [], "text"
            if heading:
                yield len(heading[1]), [(number, heading[2])]
        elif kind == "row":
            if not RULE.match(line):
                yield kind, [(number, line)]
        elif not fence and block and "|" in block[-1][1] and RULE.match(line):
            yield "text", block[:-1]
            yield "table", []
            yield "columns", block[-1:]
            block, kind = [], "row"
        else:
            block.append((number, line + "\n"))
    yield kind, block


class HtmlBlocks(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.blocks, self.pieces, self.kind, self.silent = [], [], "text", None
        self.feed(text)
        self.close()
        self.end()

    def end(self, kind="text"):
        self.blocks.append((self.kind, self.pieces))
        self.pieces, self.kind = [], kind

    def edge(self, tag, kind="text"):
        """The edge of an element: in a row of a table it only separates words."""
        if tag in BLOCKS and self.kind not in ("columns", "row"):
            self.end(kind)
        elif tag in BLOCKS or tag == "br":
            self.pieces.append((self.getpos()[0], " "))

    def handle_starttag(self, tag, attrs):
        self.silent = (tag, self.getpos()[0]) if tag in SILENT else None
        if tag in ("table", "tr"):
            self.end("columns" if tag == "tr" else "table")
        elif tag in ("td", "th"):
            self.kind = "columns" if tag == "th" and self.kind == "columns" else "row"
            self.pieces.append((self.getpos()[0], "|"))
        else:
            self.edge(tag, int(tag[1]) if re.fullmatch("h[2-6]", tag) else "text")

    def handle_endtag(self, tag):
        if self.silent and tag == self.silent[0]:
            self.silent = None
        if tag in ("table", "tr"):
            self.end()
        else:
            self.edge(tag)

    def handle_data(self, data):
        if self.silent:
            return
        first, lines = self.getpos()[0], data.replace("\xad", "").split("\n")
        for i, line in enumerate(lines):
            if 0 < i < len(lines) - 1 and not line.strip() and self.kind == "text":
                self.end()
            self.pieces.append((first + i, line + "\n" if i < len(lines) - 1 else line))


def sentences(kind, pieces):
    """(line, text) of each sentence of a block."""
    text = "".join(text for _, text in pieces)
    starts = list(itertools.accumulate((len(text) for _, text in pieces), initial=0))
    for sentence in SENTENCE.finditer(text):
        line = pieces[bisect.bisect(starts, sentence.start()) - 1][0]
        cells = sentence[0].split("|") if kind in ("columns", "row") else [sentence[0]]
        said = ", ".join(filter(None, (" ".join(cell.split()) for cell in cells)))
        if said:
            yield line, said


def passages(blocks):
    """(its own line, (line, text) of each sentence) of the passages of a file, headings and columns in front."""
    heads, used = [], False  # (level, line, text) of headings and columns that await a text; whether a row has had the columns
    for kind, pieces in [*blocks, ("table", [])]:
        body = list(sentences(kind, pieces))
        if not body and kind != "table":
            continue
        if heads and heads[-1][0] == COLUMNS and kind != "row":
            if not used:
                yield alone(heads)
            heads = []
        level = COLUMNS if kind == "columns" else kind
        if isinstance(level, int):
            if heads and heads[-1][0] >= level:
                yield alone(heads)
                heads = []
            heads.append((level, body[0][0], " ".join(text for _, text in body)))
            used = False
        elif body:
            front = [head for head in heads if head[0] > 1]
            if sum(len(text) for _, _, text in front) > SHORT:
                yield alone(front)
                front = []
            heads, used = [head for head in front if kind == "row" and head[0] == COLUMNS], True
            part = [(line, text + ":" * (text[-1] not in ".!?:")) for _, line, text in front]
            first, size = body[0][0], 0
            for sentence in body:
                first, size = first or sentence[0], size + len(sentence[1])
                part.append(sentence)
                if size > LONG:
                    yield first, part
                    part, first, size = [], 0, 0
            if size:
                yield first, part
    if heads:
        yield alone(heads)


def alone(heads):
    """The passage of headings without a text."""
    return heads[-1][1], [(line, text) for _, line, text in heads]


def notes():
    """The names of the notes below the working folder, sorted."""
    folders, files = set(), {}
    for folder, below, names in os.walk(".", followlinks=True, onerror=lambda error: say(error.filename[2:], error.strerror)):
        identity = os.stat(folder)[1:3]
        if identity in folders:
            below.clear()
            continue
        folders.add(identity)
        below[:] = [name for name in below if not name.startswith(".")]
        for name in sorted(names):
            path = os.path.join(folder, name)[2:]
            if not name.lower().endswith((".txt", ".md", ".html", ".htm")):
                continue
            try:
                status = os.stat(path)
            except OSError as error:
                say(path, f"{error.strerror}; left out")
                continue
            if stat.S_ISREG(status.st_mode) and (status[1:3] not in files or os.path.islink(files[status[1:3]])):
                files[status[1:3]] = path
    return sorted(files.values(), key=os.fsencode)


def read(folder):
    os.chdir(folder)
    for path in notes():
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            say(path, f"{error.strerror}; left out")
            continue
        if b"\0" in data:
            say(path, "is binary, not a text; left out")
            continue
        text = data.decode(errors="surrogateescape").removeprefix("\ufeff")
        if re.search("[\udc80-\udcff]", text):
            say(path, "is not UTF-8; its other bytes become U+FFFD")
        if path.lower().endswith((".html", ".htm")):
            page = HtmlBlocks(text)
            blocks = page.blocks
            if page.silent:
                say(f"{path}:{page.silent[1]}", f"<{page.silent[0]}> does not end; what follows is left out")
        else:
            blocks = text_blocks(text, path.lower().endswith(".md"))
        all_found = list(passages(blocks))
        if not all_found and text.strip():
            say(path, "has no text that is read")
        for line, found in all_found:
            offsets = itertools.accumulate((len(said) + 1 for _, said in found), initial=0)
            places = ",".join(f"{place}:{offset}" for (place, _), offset in zip(found, offsets))
            print(shown(path), line, " ".join(said for _, said in found), places, sep="\t")


def grams(text):
    words = re.findall(r"\w+", text.lower())
    return set(words) | set(zip(words, words[1:]))


def cite(folder, table):
    """Of each passage the sentence that shares most words and pairs of words with the answer, then with the question."""
    with open(table, errors="surrogateescape", newline="\n") as file:
        rows = file.read().split("\n")
    for answer in map(json.loads, sys.stdin):
        wanted = [grams(answer["text"]), grams(answer["prompt"])]
        for passage in answer["retrieved"][0]["passages"]:
            name, best, text, places = rows[passage["document"]].split("\t")
            most = [0, 0]
            places = [tuple(map(int, place.split(":"))) for place in places.split(",")]
            for (line, offset), (_, end) in zip(places, places[1:] + [(0, len(text))]):
                shared = [len(grams(text[offset:end]) & words) for words in wanted]
                if shared > most:
                    best, most = line, shared
            print(f"  [{folder}/{name}:{best}]")


for stream in (sys.stdin, sys.stdout, sys.stderr):
    stream.reconfigure(errors="surrogateescape")
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
{"read": read, "cite": cite}[sys.argv[1]](*sys.argv[2:])
