#!/usr/bin/env python3
# Prints the members of completion and chat requests of the openai package that runs it, a line for
# each: tests/cli/openai_members PATH MEMBER. With the package: python3 tests/cli/openai_members.py >tests/cli/openai_members
import typing

import openai
from openai.types import completion_create_params as completions
from openai.types.chat import completion_create_params as chat

print(f"# openai {openai.__version__}")
for path, of in (("completions", completions), ("chat", chat)):
    names = set(typing.get_type_hints(of.CompletionCreateParamsBase)) | {"stream"}
    for name in sorted(names):
        print(path, name)
