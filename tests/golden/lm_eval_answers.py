"""What lm-evaluation-harness was answered, and by its own Hugging Face backend.

lm_eval_answers.py hf MODEL TASKS FOLDER OUT   asks transformers' model in MODEL the tasks of FOLDER, to OUT
lm_eval_answers.py wikitext MODEL TEXT OUT      its task `wikitext` on the pages of TEXT, with all that it does to them; prints
                                               word_perplexity, byte_perplexity and bits_per_byte
lm_eval_answers.py compare OURS THEIRS         each answer of one is that of the other, to 1e-4; prints how many of each task
Exit 77 and a reason where the harness, or what its backend needs, is missing.
"""

import glob
import json
import os
import sys

from peer_modules import modules_or_skip

with modules_or_skip():
    import accelerate  # noqa: F401
    import lm_eval
    import protocols
    from lm_eval.__main__ import cli_evaluate


def hf(model, tasks, folder, out):
    sys.argv = ["lm_eval", "--model", "hf", "--model_args", f"pretrained={model},dtype=float32", "--device", "cpu"]
    sys.argv += ["--tasks", tasks, "--include_path", folder, "--output_path", out, "--log_samples", "--batch_size", "4"]
    cli_evaluate()


def wikitext(model, text, out):
    os.makedirs(out)
    with open(text, newline="") as file, open(os.path.join(out, "pages.jsonl"), "w") as pages:
        pages.writelines(json.dumps({"page": page}) + "\n" for page, _ in protocols.pages(file.read()))
    theirs = os.path.join(os.path.dirname(lm_eval.__file__), "tasks", "wikitext", "wikitext.yaml")
    with open(os.path.join(out, "task.yaml"), "w") as file:
        json.dump({"task": "pages-of-text", "include": theirs, "dataset_path": "json", "dataset_name": None, "training_split": None,
                   "validation_split": None, "dataset_kwargs": {"data_files": {"test": os.path.abspath(out) + "/pages.jsonl"}}}, file)
    stdout, sys.stdout = sys.stdout, sys.stderr
    hf(model, "pages-of-text", out, os.path.join(out, "answers"))
    sys.stdout = stdout
    with open(glob.glob(os.path.join(out, "answers", "**", "results_*.json"), recursive=True)[0]) as file:
        results = json.load(file)["results"]["pages-of-text"]
    print(*(repr(results[f"{name},none"]) for name in ("word_perplexity", "byte_perplexity", "bits_per_byte")))


def answers(folder):
    """{task: {document: answers}}"""
    found = {}
    for path in glob.glob(os.path.join(folder, "**", "samples_*.jsonl"), recursive=True):
        task = os.path.basename(path).removeprefix("samples_").rsplit("_", 1)[0]
        with open(path) as file:
            found[task] = {row["doc_id"]: row["resps"] for row in map(json.loads, file)}
    return found


def agree(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(agree, a, b))
    try:
        return abs(float(a) - float(b)) <= 1e-4 * max(1, abs(float(b)))
    except ValueError:
        return a == b


def compare(ours, theirs):
    ours, theirs = answers(ours), answers(theirs)
    wrong = ours.keys() ^ theirs.keys()
    for task in sorted(ours.keys() & theirs.keys()):
        print(task, len(ours[task]))
        if ours[task].keys() != theirs[task].keys():
            wrong = [*wrong, task]
        for document, answer in ours[task].items():
            if not agree(answer, theirs[task].get(document)):
                wrong = [*wrong, f"{task}: {document}: {answer}, {theirs[task].get(document)}"]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(bool(wrong) or not ours)


commands = {"hf": hf, "wikitext": wikitext, "compare": compare}
if sys.argv[1] in commands:
    commands[sys.argv[1]](*sys.argv[2:])
