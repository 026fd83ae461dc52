# html.awk: a page of a manual, from `mandoc -T html -O fragment`.
#
#   awk -f html.awk -v name=train -v section=1 -v about='train a model' -v links=FILE page
#
# links: lines "NAME SECTION ADDRESS", the pages that there are. The title is the page's own name, NAME is left out, sections
# are h2 and h3 with a list of contents, and each option and term that has a description is an anchor: train.1.html#--arch.
# The name of an option or of a section leads there, a manual's to its page.

BEGIN {
  while ((getline line <links) > 0) {
    split(line, part, " ")
    page["<b>" part[1] "</b>(" part[2] ")"] = part[3]
  }
}

# A paragraph or heading may be broken over lines: read as one.
pending != "" { pending = pending " " trimmed($0); if (!closed(pending)) next; $0 = pending; pending = "" }
/^ *<(p|h1|h2)[ >]/ && !closed($0) { pending = $0; next }

{ sub(/<!--.*-->/, "") }
in_comment { if (/-->/) in_comment = 0; next }
/<!--/ { in_comment = 1; next }
/^<table class="(head|foot)">/ { skipping = 1 }
skipping { if (/^<\/table>/) skipping = 0; next }
/^<(\/?html|\/?body|\/?head|div class="manual-text"|!DOCTYPE)/ { next }
/^<\/div>$/ && depth == 0 { next }
/<h1 class="Sh" id="NAME">/ { in_name = 1; n--; next }
in_name { if (/^<\/section>/) in_name = 0; next }
/^ *<p class="Pp"><\/p>$/ { next }
/^&#x00A0;$/ { $0 = "" }  # an empty line of literal text

{ lines[++n] = $0 }
/<div/ { depth++ }
/<\/div>/ { depth-- }

function trimmed(text) { sub(/^ +/, "", text); return text }
function closed(text) { return text ~ /<\/(p|h1|h2)>/ }
function plain(text) { gsub(/<[^>]*>/, "", text); return text }
# EXIT STATUS as Exit status; what has small letters stays.
function sentence(text,   word) {
  if (text != toupper(text) || text !~ /[A-Z][A-Z]/) return text
  text = toupper(substr(text, 1, 1)) tolower(substr(text, 2))
  gsub(/nvidia gpus/, "NVIDIA GPUs", text); gsub(/Nvidia gpus/, "NVIDIA GPUs", text); gsub(/json/, "JSON", text)
  gsub(/Xxh3/, "XXH3", text)
  return text
}
function anchor(text) {
  gsub(/[^A-Za-z0-9_.-]/, "_", text)
  if (used[text]++) text = text "-" used[text]
  return text
}

function heading(i,   level, id, title) {
  level = lines[i] ~ /<h1/ ? 2 : 3
  match(lines[i], /id="[^"]*"/)
  id = substr(lines[i], RSTART + 4, RLENGTH - 5)
  used[id]++
  option[toupper(plain(lines[i]))] = id
  title = sentence(plain(lines[i]))
  lines[i] = "<h" level " id=\"" id "\"><a href=\"#" id "\">" title "</a></h" level ">"
  entries++
  entry_level[entries] = level
  entry[entries] = "<a href=\"#" id "\">" title "</a>"
}

# A paragraph above an indented text that is no listing: each name in bold is an anchor. Those that begin an option or a term
# stand at the beginning, behind a comma or behind a semicolon.
function term(i,   rest, before, id, first, k) {
  rest = lines[i]
  sub(/^ *<p class="Pp">/, "", rest)
  lines[i] = ""
  while (match(rest, /<b>[^<]*<\/b>/)) {
    before = before substr(rest, 1, RSTART - 1)
    k = substr(rest, RSTART + 3, RLENGTH - 7)
    if (before ~ /^ *$/ || before ~ /[,;] *$/) {
      id = anchor(k)
      if (k ~ /^-/ && !(k in option)) option[k] = id
      lines[i] = lines[i] before "<a class=\"term\" id=\"" id "\" href=\"#" id "\"><b>" k "</b></a>"
      if (entries && k ~ /^--/ && k !~ /^--no-/) terms[entries] = terms[entries] "<a href=\"#" id "\">" k "</a> "
    } else {
      lines[i] = lines[i] before substr(rest, RSTART, RLENGTH)
    }
    rest = substr(rest, RSTART + RLENGTH)
    before = ""
    # What stands between two names of a list: a value and a comma.
    if (match(rest, /^[^<]*(<i>[^<]*<\/i>[^<]*)*/)) {
      before = substr(rest, 1, RLENGTH)
      rest = substr(rest, RLENGTH + 1)
    }
  }
  lines[i] = "<p class=\"Pp terms\">" lines[i] before rest
}

function linked(text,   out, token, k) {
  out = ""
  while (match(text, /<b>[^<]*<\/b>(\([1-9]\))?/)) {
    token = substr(text, RSTART, RLENGTH)
    out = out substr(text, 1, RSTART - 1)
    text = substr(text, RSTART + RLENGTH)
    k = plain(token)
    if (token in page) out = out "<a href=\"" page[token] "\">" token "</a>"
    else if (k in option) out = out "<a href=\"#" option[k] "\">" token "</a>"
    else out = out token
  }
  return out text
}

END {
  for (i = 1; i <= n; i++) {
    if (lines[i] ~ /<h[12] class=/) heading(i)
    else if (lines[i] ~ /^ *<p class="Pp"><b>/ && lines[i + 1] ~ /^ *<div class="Bd-indent">/ && lines[i + 1] !~ /<pre>/ && lines[i + 2] !~ /^<pre>/) term(i)
    gsub(/ border="1" style="[^"]*"/, "", lines[i])
    sub(/<div class="Bd-indent">&#x2022;/, "<div class=\"Bd-indent item\">\\&#x2022; ", lines[i])
  }
  print "<header><p><a href=\"index.html\">Tessera</a> <a href=\"index.html#manuals\">Manuals</a></p></header>"
  if (entries > 1) {
    print "<nav><details id=\"contents\"><summary>Contents</summary>\n<ul>"
    for (i = 1; i <= entries; i++) {
      print "<li>" entry[i] (terms[i] == "" ? "" : "<details><summary>options</summary><p>" terms[i] "</p></details>")
      if (i < entries && entry_level[i + 1] > entry_level[i]) print "<ul>"
      else print "</li>" (entry_level[i] > (i < entries ? entry_level[i + 1] : 2) ? "\n</ul></li>" : "")
    }
    print "</ul></details></nav>"
  }
  print "<main>\n<h1>" name "<span>(" section ")</span></h1>\n<p class=\"about\">" about "</p>"
  for (i = 1; i <= n; i++) {
    if (lines[i] ~ /<pre>/) in_pre = 1
    print (in_pre || lines[i] ~ /class="term"/) ? lines[i] : linked(lines[i])
    if (lines[i] ~ /<\/pre>/) in_pre = 0
  }
  print "</main>"
}
