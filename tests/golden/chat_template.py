#!/usr/bin/env python3
"""chat_template.py: writes chat_template/texts.json and snippets.json, what jinja2 set up as transformers does makes of the templates
with the conversations, and of pieces of templates. Needs jinja2."""
import json
import os

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat_template")


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("said"), [], [], body).set_lineno(line)

    def said(self, caller):
        return caller()


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = refuse
environment.globals["strftime_now"] = lambda form: {"%d %b %Y": "01 Jan 2025", "%Y-%m-%d": "2025-01-01"}[form]


def text(source, variables):
    """null: an error."""
    try:
        return environment.from_string(source).render(**variables)
    except Exception:
        return None


def read(name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def write(name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=0)
        file.write("\n")


names = sorted(name for name in os.listdir(folder) if name.endswith(".jinja"))
given = {"bos_token": "<s>", "eos_token": "</s>", "tools": None, "documents": None, "add_generation_prompt": True}
talks = json.loads(read("conversations.json"))
write("texts.json", {name: [text(read(name), {**given, **talk}) for talk in talks] for name in names})
snippets = json.loads(read("snippets.json"))
for one in snippets["snippets"]:
    one["text"] = text(one["template"], snippets["variables"])
write("snippets.json", snippets)
