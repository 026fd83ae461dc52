#!/usr/bin/env bats
# tessera-tour(7), -tutorial(7) and -your-model(7): their commands run as they stand, at the smallest scale; and the pages that
# are made of the manuals.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
}

# runs PAGE SED...: the page's commands, changed by sed to the smallest scale, run in an empty folder, with the programs and
# these tools in PATH, and neither home nor checkout.
runs() {
  local page=$1 tool
  shift
  mkdir tools folder
  for tool in awk bash cat cp dirname grep head mkdir printf realpath rm sed tr wc; do
    ln -s "$(command -v "$tool")" "tools/$tool"
  done
  {
    echo 'set -euo pipefail'
    sed -n '/^```/,/^```/{/^```/!p}' "$root/man/$page.7.scd" | sed 's/\\\(.\)/\1/g' | sed "$@"
  } >script
  ! grep -F -e examples/ -e "$root" script || false
  (cd folder && env -i PATH="${programs:-$BIN}:$PWD/../tools" HOME="$PWD" TMPDIR="$PWD" OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 bash ../script >../out 2>../err) ||
    { tail -n 5 err && return 1; }
}

# tour: the tour at the smallest scale.
tour() {
  runs tessera-tour -e 's/^steps=.*/steps=2/' -e 's/--d-model 64/--d-model 16/' -e 's/--vocab-size 1000/--vocab-size 300/' \
    -e 's/1,1000p/1,200p/; s/1001,1150p/1001,1030p/; s/1151,1300p/1151,1200p/' -e 's/grep -m 300/grep -m 40/' \
    -e 's/-n 200 -o languages/-n 40 -o languages/; s/-n 50 --automata/-n 10 --automata/' -e 's/--max-tokens 20/--max-tokens 5/'
}

@test "every command of the tour runs in an empty folder, and every program is among them" {
  needs train
  grep -q '^steps=30$' "$root/man/tessera-tour.7.scd"
  tour
  for program in "$BIN"/*; do
    grep -qE "(^|[|] )${program##*/} " script || { echo "no ${program##*/}" && return 1; }
  done
  [ -s folder/page.html ]
  [ -s folder/errors.tsv ]
  [ -s folder/clean.jsonl ]
  [ "$(wc -l <folder/cited.tsv)" -gt 1 ]
}

@test "every command of the tour does the same by the file of its own --print-config" {
  needs train
  mkdir repeat
  for program in "$BIN"/*; do
    printf '#!/usr/bin/env bash\nexport BIN=%q REPEATED=%q PATH=/usr/bin:/bin\nexec %q %q "$@"\n' "$BIN" "$PWD/repeated" \
      "$root/tests/cli/repeat" "${program##*/}" >"repeat/${program##*/}"
  done
  chmod +x repeat/*
  ln -s "$BIN/../share" share
  programs=$PWD/repeat tour
  [ "$(wc -l <repeated.all)" -gt 50 ]
  [ ! -s repeated ] || { cat repeated && return 1; }
}

@test "every command of the tutorial runs, and says what the page says that it says" {
  needs train
  needs eval-ppl
  grep -q '^steps=400$' "$root/man/tessera-tutorial.7.scd"
  runs tessera-tutorial -e 's/^steps=.*/steps=3/' -e 's/--d-model 128/--d-model 16/' -e 's/--layers 4/--layers 1/' \
    -e 's/^cp .*/& \&\& sed -i 800q book.txt/' -e 's/--vocab-size 2000/--vocab-size 300/'
  # The table: a line a memory, in the page's order, with two figures.
  [ "$(grep -E '^[a-z]+'$'\t''[0-9.]+'$'\t''[0-9.]+$' out | cut -f 1 | tr '\n' ' ')" = 'none cache datastore ngrams local long all ' ]
  [ "$(grep -cE '^ *[0-9]+ +[0-9.]+ =+$' out)" -eq 6 ]
  [ "$(grep -c '^p ' out)" -eq 3 ]
}

@test "every command of the page on one's own model runs, with the tiny Llama that it makes where there is none" {
  needs train
  needs score
  runs tessera-your-model -e 's/^steps=.*/steps=2/' -e 's/--max-tokens 40/--max-tokens 5/' -e "s/^sed -n '1,3000p'/sed -n '1,600p'/" \
    -e 's/3001,\$p/6000,6900p/' -e 's/--d-model 64/--d-model 16/' -e 's/--vocab-size 1000/--vocab-size 300/'
  [ "$(grep -E '^(alone|store|ngrams)'$'\t' out | cut -f 1 | tr '\n' ' ')" = 'alone store ngrams ' ]
  [ "$(wc -l <folder/cited.tsv)" -gt 1 ]
  [ "$(model info --json folder/mine-for-transformers | field family)" = llama ]
}

@test "plot: figures that are not there and flags that are not its own are named" {
  command -v gnuplot >/dev/null || skip "gnuplot is not installed"
  command -v jq >/dev/null || skip "jq is not installed"
  plot=$root/examples/plot/plot
  printf '{"type":"report","loss":3}\n{"type":"part","bucket":"0","loss":2.5}\n{"type":"part","bucket":"1-3","loss":2}\n' >by.json
  "$plot" by by.json -o by.svg
  grep -q '<svg' by.svg && grep -q '1-3' by.svg
  "$plot" bars "$root/examples/plot/memories.tsv" -o bars.svg
  alone=$(head -n 1 "$root/examples/plot/memories.tsv" | cut -f 2)
  grep -q "<svg" bars.svg && grep -q "$(printf %.1f "$alone")" bars.svg
  for line in "64 plot by by.json" "64 plot nothing by.json -o x.svg" "65 plot curves by -o x.svg" "65 plot table by.json -o x.svg" "65 plot bars by.json -o x.svg"; do
    read -r code _ arguments <<<"$line"
    # shellcheck disable=SC2086  # several
    run --separate-stderr "$plot" $arguments
    [ "$status" -eq "$code" ] || { echo "$line: $status" && return 1; }
    # shellcheck disable=SC2154  # stderr is bats'
    [[ $stderr == plot:* ]]
    [ "$(wc -l <<<"$stderr")" -eq 1 ]
    [ ! -e x.svg ]
  done
}

@test "the README's picture has the figures of the tutorial" {
  [ "$(wc -l <"$root/examples/plot/memories.tsv")" -eq 7 ]
  grep -qF '](examples/plot/memories.svg)' "$root/README.md"
  cut -f 2 "$root/examples/plot/memories.tsv" | while read -r perplexity; do
    grep -qx ":  $perplexity" "$root/man/tessera-tutorial.7.scd" || { echo "no $perplexity" && return 1; }
    grep -q ">.*$(printf %.1f "$perplexity")" "$root/examples/plot/memories.svg" || { echo "not drawn: $perplexity" && return 1; }
  done
}

@test "the README's table of memories has the figures of the tutorial" {
  sed -n '/^| memory, with interpolation weights/,/^$/p' "$root/README.md" | tail -n +3 | awk -F ' *[|] *' 'NF > 1 { print $3, $4 }' >"$BATS_TEST_TMPDIR/shown"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/shown")" -eq 5 ]
  while read -r perplexity bits; do
    grep -x -A 1 ":  $perplexity" "$root/man/tessera-tutorial.7.scd" | grep -qx ":  $bits" || { echo "no $perplexity $bits" && return 1; }
  done <"$BATS_TEST_TMPDIR/shown"
}

@test "make html: a page a manual with its title, pictures, an anchor for each option, and links that lead somewhere" {
  command -v mandoc >/dev/null && command -v lowdown >/dev/null || skip "mandoc or lowdown is not installed"
  needs train
  BUILD=$BIN/.. "$root/tools/html"
  pages=$BIN/../html
  for page in "$root"/man/*.scd; do
    name=$(basename "$page" .scd)
    grep -qF "<h1>${name%.*}<span>(${name##*.})</span></h1>" "$pages/$name.html"
  done
  python3 - "$pages" "$root/man" <<'END'
import html, html.parser, pathlib, re, sys

pages, sources = map(pathlib.Path, sys.argv[1:])

# What is to be copied stands there as it is typed, with empty lines and indents.
for source in sources.glob("*.scd"):
    typed = [re.sub(r"\\(.)", r"\1", text).rstrip("\n") for text in re.findall(r"^```\n(.*?)^```", source.read_text(), re.S | re.M)]
    shown = re.findall(r"<pre>(.*?)</pre>", (pages / (source.stem + ".html")).read_text(), re.S)
    assert typed == [html.unescape(re.sub(r"<[^>]*>", "", text)) for text in shown], source.name

class Page(html.parser.HTMLParser):
    def __init__(self, file):
        super().__init__()
        self.ids, self.links, self.files, self.tags = [], [], [], []
        self.viewport = False
        self.feed(file.read_text())

    def handle_starttag(self, tag, attributes):
        at = dict(attributes)
        self.tags.append(tag)
        self.viewport |= at.get("name") == "viewport"
        if "id" in at:
            self.ids.append(at["id"])
        if tag == "a" and ":" not in at["href"]:
            self.links.append(at["href"])
        if tag in ("img", "link"):
            self.files.append(at.get("src") or at["href"])

found = {file.name: Page(file) for file in pages.glob("*.html")}
for name, page in found.items():
    assert page.viewport and page.tags.count("h1") == 1 and "nav" in page.tags, name
    assert len(set(page.ids)) == len(page.ids), (name, [i for i in page.ids if page.ids.count(i) > 1])
    for file in page.files:
        assert (pages / file).is_file(), (name, file)
    for link in page.links:
        to, _, anchor = link.partition("#")
        assert not anchor or anchor in found[to or name].ids, (name, link)
        assert (pages / (to or name)).is_file(), (name, link)
END
  for program in "$BIN"/*; do
    "$program" --print-flags | cut -f 2 | tr , '\n' | grep '^--' | grep -v '^--no-' | sort -u >flags
    grep -o 'id="--[^"]*"' "$pages/${program##*/}.1.html" | sed 's/^id="//; s/"$//; s/-[0-9]*$//' | sort -u | comm -23 flags - >missing
    [ ! -s missing ] || { echo "${program##*/}: no anchor" && cat missing && return 1; }
  done
  grep -q '<a href="shard.5.html"><b>shard</b>(5)</a>' "$pages/train.1.html"
}

@test "make html: no page is wider than a phone of 400 pixels" {
  command -v chromium >/dev/null || skip 'chromium is missing'
  command -v mandoc >/dev/null && command -v lowdown >/dev/null || skip "mandoc or lowdown is not installed"
  cp -r "$(BUILD=$BIN/.. "$root/tools/html" | sed 's|/index.html$||')" pages
  cat >pages/measure.html <<'END'
<body><script>
(async () => {
  const wide = [];
  for (const name of NAMES) {
    const frame = document.createElement('iframe');
    frame.style.width = '400px';
    frame.src = name;
    document.body.append(frame);
    await new Promise(done => frame.onload = done);
    const width = frame.contentDocument.documentElement.scrollWidth;
    if (width > 400) wide.push(name + ' ' + width);
    frame.remove();
  }
  document.title = 'measured ' + wide.join(', ') + ';';
})();
</script></body>
END
  names=$(cd pages && printf "'%s'," [^m]*.html m[^e]*.html)
  sed -i "s/NAMES/[$names]/" pages/measure.html
  timeout 100 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$PWD/profile" \
    --allow-file-access-from-files --virtual-time-budget=60000 --dump-dom "file://$PWD/pages/measure.html" >dom 2>err
  grep -q '<title>measured ;</title>' dom || { grep -o '<title>.*</title>' dom && return 1; }
}
