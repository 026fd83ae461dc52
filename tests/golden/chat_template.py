#!/usr/bin/env python3
"""chat_template.py: writes chat_template/texts.json, snippets.json and expressions.json, what jinja2 set up as transformers does makes
of the templates with the conversations, of pieces of templates, and of every method, filter and format with many values. Needs jinja2."""
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

texts = ["", "a", "ß", "İstanbul", "ΑΣ ΣΑΣ. ΟΔΥΣΣΕΥΣ’", "ﬁn ﬄ ŉ ǰ ᾳ ᾀ ᾷ ǆ", "Ab cD", "12", "²", "١٢", "½", "一二", " x\u3000", "ª", "Ⅷ", "𝟘𝟙", "they're bill's", "ა",
         "\xad\u200b\xa0", "ǅ", "a  b-c (ß) {ǆ} [é] <x_1>"]
cases = "\u0149\u0390\u0587\u1e9e\u1f88\u1fb2\u1fbc\u1c90\u1e9a\ufb13\u03c2\u03a3\u0130\u0131\u017f\u212a\u2160\u24d0\ua64a\u1c80"
plain_methods = ("upper lower title capitalize casefold swapcase isdigit isdecimal isnumeric isalpha isalnum isspace isupper islower istitle isascii "
                 "strip split rsplit").split()
plain_filters = "upper title capitalize int float wordcount length list first last reverse tojson sort".split()
calls = """split(',')|split('b')|rsplit('b',1)|split(None,1)|rsplit(None,1)|split(None,0)|split(maxsplit=1)|rsplit('ab',1)|split('',1)|find('b')|rfind('b')
find('b',2)|find('b',-3,-1)|rfind('b',0,3)|find('')|rfind('')|find('',9)|index('b')|rindex('zz')|count('b')|count('')|count('b',2)|replace('b','')|replace('','-')
replace('','-',2)|replace('b','XYZ',1)|replace('b','X',0)|startswith('a')|startswith(('x','a'))|startswith('b',1)|endswith('c',0,3)|endswith(['c'])|startswith('',9)
strip('abc')|rstrip('cß ')|removeprefix('ab')|removesuffix('c')|partition('b')|rpartition('b')|rpartition('q')|zfill(9)|center(10)|center(9,'*')|ljust(9)|rjust(9,'é')
join(['1','2'])|join('xyz')|join([1])|expandtabs()|expandtabs(3)|splitlines()|splitlines(true)|nomethod|nomethod()|upper(1)|strip(chars='a')|replace('b','c',count=1)"""
numbers = ["7", "-7", "0", "1234567", "true", "2.5", "-0.125", "1e16", "12345.678", "1e-7", "100.0", "'abc'", "'é'", "none", "[1]"]
braces = ["", "5", "<5", "^7", "*^9", "05", "<05", "+", "#x", "#010x", "b", "o", "X", "d", "e", ".2f", ".0f", "10.3f", "+.1e", "g", ".3g", "G", ".1%", ",", "_",
          "010,", "012,.2f", "_x", "s", ".2", ".1", "5s", "c", "n", " d", "=5", "é>5", "#.0f", "q", "5."]
percents = ["%s", "%d", "%5d", "%-5d|", "%05d", "%+d", "% d", "%#x", "%o", "%.3d", "%+.3d", "%08.3d", "%f", "%.2f", "%-10.1f|", "%+010.1f", "%e", "%.1E", "%g", "%#g", "%c",
            "%r", "%5s", "%.2s", "%ld", "%%", "%q", "%"]
formats = """'%s %s' % (1,2)|'%s' % (1,2)|'%s %s' % (1,)|'%(a)s %(b)d' % {'a':1,'b':2}|'%(a)s' % {}|'x' % 1|'x' % []|'x' % {}|'x' % ()|'%*d' % (5,3)|'%-*d.' % (5,3)
'%.*f' % (2,3.14159)|'%s' % [1,2]|'%s' % {'a':1}|'%s' % undefinedthing|'%s' % ()|'%(a b(c))s' % {'a b(c)':3}|'{} {}'.format(1,2)|'{1} {0}'.format(1,2)
'{a} {b}'.format(a=1,b='x')|'{} {a}'.format(1,a=2)|'{} {0}'.format(1)|'{'.format(1)|'}'.format(1)|'{{}}'.format(1)|'{{{}}}'.format(1)|'{0.role}'.format(messages[0])
'{0[role]}'.format(messages[0])|'{0[1]}'.format([5,6])|'{m[content]!r}'.format(m=messages[0])|'{!s:>5}'.format(none)|'{:{}}'.format('x',5)
'{:{w}.{p}f}'.format(3.14159,w=8,p=2)|'{}'.format(undefinedthing)|'{}'.format([1,'a'])|'{:d}'.format(3.0)|'{5}'.format(1)|'{x}'.format(y=1)|'{0.x}'.format(1)
'{a[b][c]}'.format(a={'b':{'c':2}})|'{:,}'.format(-1234567.891)|'{0!q}'.format(1)|'{:{:{}}}'.format(1,2,3)|'{a}'.format_map({'a': 5})|'{a}'.format_map({})"""
false_values = ["none", "undefinedthing", "false", "''", "[]", "{}", "0", "true", "5", "'ab'", "[0,1]", "{'a':1}", "[{'a':1},{'b':2}]"]
filters = """select|list;reject|list;select('odd')|list;selectattr('a')|list;rejectattr('a')|list;selectattr('a','defined')|list;map('upper')|list;map(attribute='a')|list
map(attribute='a',default=3)|list;map|list;select('nosuch')|list;selectattr|list;map('nofilter')|list;unique|list;sort;list;join('-');length;first;last;reverse|list;sum;min;max
dictsort;items|list;tojson;string;int;float;abs;round;default('d');default('d',true);sort(attribute='a');min(attribute='a');unique(attribute='a')|list;center(5);sort(foo=1)
first(1);upper(1);join(x='d');indent;indent('>>',true)"""
dicts = ["{1:2}", "{1:'a',true:'b'}", "{none:1}", "{1.5:2}", "{(1,2):3}", "{'a':1,1:2}", "{'a':1,'a':2}", "{[1]:2}", "{0:0,512:128,1024:256}",
         "{1:1,2:2,3:3,4:4,5:5,6:6,7:7,8:8,9:9,10:10,3:33}"]
with_dict = """%s;%s[1];%s.get(1);%s.get(none);1 in %s;true in %s;'a' in %s;%s|tojson;%s|tojson(sort_keys=true);%s|dictsort;%s|items|list;%s|list;%s.keys()|list;%s.values()|list
%s == {1:2};%s[(1,2)];%s[1.0];%s['a'];%s.a;dict(%s, b=1);%s[[1]];[1] in %s;%s|dictsort(by='value');%s[512]"""
others = """[1,2]<[1,3]|[1,2]<[1,2,0]|[[1],[2]]<[[1],[3]]|[none]<=[none]|[none,1]<[none,2]|[none]<[1]|(1,)<[2]|true<2|9007199254740993 == 9007199254740992.0
9007199254740993 > 9007199254740992.0|[1]==(1,)|{1:2}=={true:2}|s[5]|s[-3]|s[100]|s[1:8:2]|s[::-3]|s[8:1:-2]|s[5:2]|nums[::2]|nums[::-1]|nums[9:-9:-1]|nums[::0]|'' in ''
'é' in s|1 in 'a'|n.nomember|(1,2).copy()|[1,[2,[3]]]|[undefinedthing]|d.foo.bar|(1,2).count(1)|-0.0|(-8)**2|7%-3"""
more = """'12'|int(base=8);'0xff'|int(0,16);'zz'|int(7,16);'1_000'|int;'1__0'|int;'--5'|int;'1e3'|int;'inf'|int;'1e400'|float;'1_0.5'|float;'infinity'|float;'abc'|float(2)
[1,1.0,true]|unique|list;['a','A']|unique|list;[[1],[1]]|unique|list;messages|sort(attribute='content,role')|map(attribute='role')|list;'%s and %s'|format(1,'b')
'%(a)s'|format(a=3);'%d'|format('x')"""


def split(text, at):
    return [one for line in text.split("\n") for one in line.split(at)]


def quoted(value):
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


expressions = [f"{quoted(t)}.{m}()" for m in plain_methods for t in texts + (list(cases) if m in plain_methods[:6] else [])]
expressions += [f"{quoted(t)}|{f}" for f in plain_filters for t in texts] + [f"[{quoted(t)}]" for t in texts]
expressions += [f"{t}.{m}" for m in split(calls, "|") for t in ["'abcabc'", "' a b  c '", "'a\\tb\\nc'", "'-3'", "''", "'été bêb'"]]
expressions += [f"'{{:{b}}}'.format({v})" for v in numbers for b in braces] + [f"'{p}' % {v}" for v in numbers for p in percents]
expressions += split(formats, "|") + [f"{v}|{f}" for v in false_values for f in split(filters, ";")]
expressions += [one.replace("%s", d) for d in dicts for one in split(with_dict, ";")] + split(others, "|") + split(more, ";")
results = {one: text("{{ " + one + " }}", snippets["variables"]) for one in expressions}
with open(os.path.join(folder, "expressions.json"), "w", encoding="utf-8") as file:
    file.write("{\n" + ",\n".join(f"{json.dumps(k, ensure_ascii=False)}: {json.dumps(v, ensure_ascii=False)}" for k, v in results.items()) + "\n}\n")
