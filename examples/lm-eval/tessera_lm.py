"""Tessera's `score` and `sample` as a model of lm-evaluation-harness, so that each of its tasks runs with every memory.

    python tessera_lm.py --model tessera --model_args "model=gpt2,flags=--datastore store --k 64" --tasks lambada_openai

takes the arguments of `lm_eval`. Of --model_args: model, a folder with its tokenizer.json; flags, more options of both programs
(memories, datastores, --device), as a shell reads them, but without commas, which the harness cuts at; score and sample, more
options of the one; programs, where they are [looked for in PATH]; max_gen_toks [256]. --apply_chat_template makes each prompt a
conversation by the chat template of the model's folder, whose special tokens are then tokens of the prompt.
"""

import datetime
import json
import os
import shlex
import subprocess
import tempfile

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from lm_eval.__main__ import cli_evaluate
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model


class Generation(jinja2.ext.Extension):
    """{% generation %}, which marks an answer and prints what is in it."""

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


def read_json(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


@register_model("tessera")
class Tessera(LM):
    def __init__(self, model, flags="", score="", sample="", programs="", max_gen_toks=256, **_):
        super().__init__()
        self.model, self.programs, self.max_gen_toks = str(model), programs, int(max_gen_toks)
        self.conversations = False
        self.flags = {"score": shlex.split(f"{flags} {score}"), "sample": shlex.split(f"{flags} {sample}")}

    def answers(self, program, requests, *options):
        """The program's JSON lines, one for each request, in their order."""
        if not requests:
            return []
        if self.conversations:
            requests = [{**request, "special": True} for request in requests]
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            file.writelines(json.dumps(request) + "\n" for request in requests)
            file.flush()
            command = [os.path.join(self.programs, program), "-q", "--json", "-m", self.model]
            command += [*self.flags[program], *options, file.name]
            lines = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()
        if len(lines) != len(requests):
            raise RuntimeError(f"{program}: {len(lines)} answers for {len(requests)} requests")
        return [json.loads(line) for line in lines]

    @property
    def tokenizer_name(self):
        return self.model.replace("/", "__")

    def chat_template(self, chat_template=False):
        """The source: of chat_template.jinja, else of tokenizer_config.json, where a name chooses among several."""
        if chat_template is False or chat_template is None:
            return ""
        path = os.path.join(self.model, "chat_template.jinja")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
        found = read_json(self.model, "tokenizer_config.json").get("chat_template")
        if isinstance(found, list):
            name = chat_template if isinstance(chat_template, str) else "default"
            found = {one["name"]: one["template"] for one in found}.get(name)
        if not found:
            raise ValueError(f"{self.model}: no chat template in it; leave --apply_chat_template out")
        return found

    def apply_chat_template(self, chat_history, add_generation_prompt=True):
        self.conversations = True
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
        environment.filters["tojson"] = tojson
        environment.globals["raise_exception"] = refuse
        environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
        tokens = {}
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            for key, value in read_json(self.model, name).items():
                text = value.get("content") if isinstance(value, dict) else value
                if key.endswith("_token") and isinstance(text, str):
                    tokens[key] = text
        text = environment.from_string(self.chat_template(True)).render(
            **tokens, messages=chat_history, tools=None, documents=None, add_generation_prompt=add_generation_prompt)
        if add_generation_prompt:
            return text
        begun = chat_history[-1]["content"].strip()  # the answer that the model goes on with
        return text[: text.rindex(begun) + len(begun)]

    def loglikelihood(self, requests, disable_tqdm=False):
        asked = [dict(zip(("context", "continuation"), request.args)) for request in requests]
        return [(answer["log_prob"], answer["greedy"]) for answer in self.answers("score", asked, "--protocol", "lm-eval")]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        asked = [{"text": request.args[0]} for request in requests]
        return [answer["log_prob"] for answer in self.answers("score", asked, "--protocol", "lm-eval")]

    def generate_until(self, requests, disable_tqdm=False):
        texts, groups = [""] * len(requests), {}
        for number, request in enumerate(requests):
            groups.setdefault(json.dumps(request.args[1], sort_keys=True), []).append(number)
        for how, numbers in groups.items():
            asked = [{"prompt": requests[number].args[0]} for number in numbers]
            for number, answer in zip(numbers, self.answers("sample", asked, *self.options(json.loads(how)))):
                texts[number] = answer["text"]
        return texts

    def options(self, how):
        """`sample`'s for the keywords of a task's generation_kwargs."""
        until = how.get("until") or []
        drawn = how.get("do_sample", how.get("temperature", 0) > 0)
        options = ["--bos", "none"] if self.conversations else []  # a chat template has its own beginning
        options += ["--max-tokens", str(how.get("max_gen_toks", self.max_gen_toks))]
        options += ["--temperature", str(how.get("temperature", 1) if drawn else 0)]
        for name in ("top_k", "top_p"):
            options += ["--" + name.replace("_", "-"), str(how[name])] if drawn and name in how else []
        for stop in [until] if isinstance(until, str) else until:
            options += ["--stop", stop]
        return options


if __name__ == "__main__":
    cli_evaluate()
