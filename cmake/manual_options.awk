# manual_options.awk: a manual's source with the options that it leaves to the program's own table (--print-flags).
#
#   awk -f manual_options.awk NAME.flags man/NAME.1.scd
#
# A line that is only *--name* becomes that option's entry: its value, help and default. An option that has no entry on the page
# gets one at the end of the section of # OPTIONS with its group's name, else in a section of its group at the end of # OPTIONS.

BEGIN { FS = "\t" }

FILENAME == ARGV[1] {
  if ($2 !~ /^-/) next
  n = split($2, names, ",")
  for (i = 1; i <= n; i++)
    if (names[i] ~ /^--/ && !(names[i] in entry)) {
      if (names[i] !~ /^--no-/) order[++options] = names[i]
      entry[names[i]] = entry_of($2, $3, $4, $5)
      group[names[i]] = $6
    }
  next
}
{
  line[++lines] = $0
  if ($0 ~ /^# /) in_options = $0 == "# OPTIONS"
  head = $0 ~ /^\*-/ || (head && $0 !~ /^(\t|$)/) # of an entry
  rest = in_options && head ? $0 : ""
  while (match(rest, /--[a-z0-9][a-z0-9-]*/)) {
    mentioned[substr(rest, RSTART, RLENGTH)] = 1
    rest = substr(rest, RSTART + RLENGTH)
  }
}

END {
  for (i = 1; i <= lines + 1; i++) {
    if (i > lines || line[i] ~ /^##? /) {
      if (inside) close_section(section, 0)
      if (inside && (i > lines || line[i] ~ /^# /)) close_section("", 1)
    }
    if (i > lines) break
    if (line[i] ~ /^# /) { inside = line[i] == "# OPTIONS"; section = "" }
    if (inside && line[i] ~ /^## /) { section = substr(line[i], 4); sections++ }
    name = line[i]
    gsub(/^\*|\*$/, "", name)
    if (line[i] == "*" name "*" && name in entry && line[i + 1] !~ /^\t/) printf "%s", entry[name]
    else print line[i]
  }
}

# The entries of the group `name`, or of all that are left, each group below its name.
function close_section(name, all,   i, heading, last) {
  for (i = 1; i <= options; i++) {
    if (order[i] in mentioned || (!all && group[order[i]] != name)) continue
    heading = group[order[i]] == "Options" ? "More options" : group[order[i]]
    if (all && sections > 0 && heading != last) print "## " heading "\n"
    last = heading
    printf "%s\n", entry[order[i]]
    mentioned[order[i]] = 1
  }
}

function escaped(text) {
  gsub(/[\\*_]/, "\\\\&", text)
  return text
}

function value_of(kind,   n, i, one, all) {
  if (kind == "") return ""
  if (kind !~ /\|/) return " _" escaped(kind) "_"
  n = split(kind, one, "|")
  for (i = 1; i <= n; i++) all = all (i > 1 ? "|" : " ") "*" escaped(one[i]) "*"
  return all
}

function entry_of(flags, kind, usual, help,   n, i, one, head) {
  n = split(flags, one, ",")
  for (i = 1; i <= n; i++) head = head (i > 1 ? ", " : "") "*" escaped(one[i]) "*"
  if (help ~ /^-/) help = "with " help
  help = toupper(substr(help, 1, 1)) substr(help, 2)
  if (help !~ /\]$/ && usual != "") help = help " [" usual "]"
  return head value_of(kind) "\n\t" escaped(help) ".\n"
}
