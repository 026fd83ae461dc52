"""What four programs make of a text's ids, in plain Python around transformers: the windows of each, and what it counts.

protocols.py MODEL text|wikitext TEXT ELEMENTS
    MODEL     a folder of GPT-2's shape with 64 positions
    TEXT      its documents are paragraphs, or pages of WikiText
    ELEMENTS  the ids of all documents, uint16, each document closed by MARK (zstdcat of a shard)
Prints a JSON line for each protocol and shape: protocol, window, stride, loss (nats), tokens; of lm-eval also
word_perplexity and byte_perplexity. Where a protocol begins with a token it is MARK; "llama.cpp+begin" has it too.
Exit 77 and a reason where transformers is missing.
"""

import array
import json
import math
import re
import sys

from peer_modules import modules_or_skip

with modules_or_skip():
    import torch
    from transformers import GPT2LMHeadModel

MARK = 299


def paragraphs(text):
    return [(part, len(part.split())) for part in text.split("\n\n")]


def pages(text):
    """WikiText's, and their words, as the task `wikitext` of lm-evaluation-harness has them."""
    found = [[]]
    for line in text.split("\n"):
        title = line.replace("= = =", "===").replace("= =", "==").strip()
        if title.startswith("= ") and title.endswith(" ="):
            found.append([])
        found[-1].append(line)
    whole = ["\n".join(lines) for lines in found]
    return [(page, len(re.split(r"\s+", page))) for page in whole if page.strip()]


def nats(model, ids):
    """-log p of each id but the first."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids[:-1]])).logits[0].double()
    return torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none")


def hf(model, ids, window, stride):
    """The page on perplexity in transformers' manual: the loss of a window, times its labels less one."""
    total, count, before = 0.0, 0, 0
    for begin in range(0, len(ids), stride):
        end = min(begin + window, len(ids))
        inputs = torch.tensor([ids[begin:end]])
        labels = inputs.clone()
        labels[:, : -(end - before)] = -100
        with torch.no_grad():
            loss = model(inputs, labels=labels).loss.item()
        less = (labels != -100).sum().item() - 1
        total, count, before = total + loss * less, count + less, end
        if end == len(ids):
            break
    return total, count


def lm_eval(model, documents, window, stride):
    """Rolling windows of lm-evaluation-harness, context_len = window - stride + 1, each document after the prefix token."""
    total, count = 0.0, 0
    for document in documents:
        ids = [MARK, *document]
        done = 0
        while done < len(ids) - 1:
            new = min(len(ids) - 1 - done, stride if done else window)
            end = done + new
            total += nats(model, ids[max(0, end - window) : end + 1])[-new:].sum().item()
            done, count = end, count + new
    return total, count


def llama_cpp(model, ids, window, first=None):
    """Whole chunks, each beginning with `first` where there is one; the tokens after its middle one are scored."""
    ids = ids if first is None else [first, *ids]
    total, count = 0.0, 0
    for chunk in range(len(ids) // window):
        part = ids[chunk * window : (chunk + 1) * window]
        if first is not None:
            part[0] = first
        scored = nats(model, part)[window // 2 :]
        total, count = total + scored.sum().item(), count + len(scored)
    return total, count


def fairseq(model, ids, window, stride):
    """Blocks of new tokens, with the window - stride inputs before them as context."""
    ids = [MARK, *ids]
    total, count = 0.0, 0
    for begin in range(0, len(ids) - 1, stride):
        end = min(begin + stride, len(ids) - 1)
        context = min(window - stride, begin)
        scored = nats(model, ids[begin - context : end + 1])[context:]
        total, count = total + scored.sum().item(), count + len(scored)
    return total, count


def main(folder, kind, text, elements):
    model = GPT2LMHeadModel.from_pretrained(folder).double().eval()
    with open(text, newline="") as file:
        originals = {"text": paragraphs, "wikitext": pages}[kind](file.read())
    with open(elements, "rb") as file:
        ids = array.array("H", file.read())
    documents = [[]]
    for i in ids:
        if i == MARK:
            documents.append([])
        else:
            documents[-1].append(i)
    assert not documents.pop() and len(documents) == len(originals)
    ids = [i for document in documents for i in document]
    words, size = sum(n for _, n in originals), sum(len(part.encode()) for part, _ in originals)

    def say(name, window, stride, figures, **more):
        total, count = figures
        if name == "lm-eval":
            more = {"word_perplexity": math.exp(total / words), "byte_perplexity": math.exp(total / size)}
        print(json.dumps({"protocol": name, "window": window, "stride": stride, "loss": total / count, "tokens": count, **more}))

    for window, stride in ((64, 64), (64, 24), (33, 32), (20, 7)):
        say("hf", window, stride, hf(model, ids, window, stride))
    for window, stride in ((64, 64), (64, 17), (15, 15)):
        say("lm-eval", window, stride, lm_eval(model, documents, window, stride))
        say("fairseq", window, stride, fairseq(model, ids, window, stride))
    for window in (64, 33, 11):
        say("llama.cpp", window, window, llama_cpp(model, ids, window))
        say("llama.cpp+begin", window, window, llama_cpp(model, ids, window, MARK))


if __name__ == "__main__" and len(sys.argv) == 5:
    main(*sys.argv[1:])
