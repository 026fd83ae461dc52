#!/usr/bin/env bats
# The manuals: commands that can be copied, and an overview that leaves nothing out.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
}

# section NAME PAGE: of its source.
section() {
  awk -v name="# $1" '/^# / { on = $0 == name; next } on' "$2"
}

# rendered PAGE: as a wide terminal shows it.
rendered() {
  scdoc <"$1" >page && LC_ALL=C.UTF-8 MANWIDTH=400 man -E UTF-8 -l page | sed 's/.\x08//g'
}

@test "every command of the examples stands on a line of its own, as it is typed" {
  command -v scdoc >/dev/null || skip "scdoc is not installed"
  pages=0
  for page in "$root"/man/*.scd; do
    grep -q '^# EXAMPLES' "$page" || continue
    pages=$((pages + 1))
    # Commands are literal text: what is indented otherwise flows, or keeps its tab.
    ! section EXAMPLES "$page" | grep "^$(printf '\t')" || { echo "$page: indented text in EXAMPLES" && return 1; }
    command -v man >/dev/null || continue
    rendered "$page" | sed 's/^ *//' >text
    section EXAMPLES "$page" | sed -n '/^```/,/^```/{/^```/!p}' | sed 's/^ *//; s/\\\(.\)/\1/g' >commands
    [ -s commands ]
    while IFS= read -r line; do
      grep -qxF -- "$line" text || { echo "$page: not as it stands: $line" && return 1; }
    done <commands
  done
  [ "$pages" -gt 10 ]
}

@test "no page has a line that keeps a tab" {
  command -v scdoc >/dev/null || skip "scdoc is not installed"
  for page in "$root"/man/*.scd; do
    ! scdoc <"$page" | grep -v '^T[{}&]' | grep "$(printf '\t')" || { echo "${page##*/}" && return 1; }
  done
}

@test "tessera(7) names every page, the environment that is read, and the exit codes that there are" {
  overview=$root/man/tessera.7.scd
  for page in "$root"/man/*.scd; do
    page=$(basename "$page" .scd)
    [ "$page" = tessera.7 ] || grep -qF "*${page%.*}*(${page##*.})" "$overview" || { echo "no $page" && return 1; }
  done
  grep -rhoE 'getenv\("[A-Z_]+"\)' "$root/lib" "$root/cmd" | grep -oE '[A-Z_]+' | sort -u | while read -r name; do
    grep -qx "\*$name\*" "$overview" || { echo "no $name" && return 1; }
  done
  sed -n '/^enum class Code/,/^}/s/^  [a-z_]* = \([0-9]*\),.*/\1/p' "$root/lib/core/error.h" >codes
  [ "$(wc -l <codes)" -gt 10 ]
  sed -n '/^# EXIT STATUS/,/^# FILES/s/^\*\([0-9]*\)\*$/\1/p' "$overview" | diff codes -
  # What a page says of its own program is among them.
  for page in "$root"/man/*.1.scd; do
    section 'EXIT STATUS' "$page" | grep -oE '(^|[ *])[0-9]{1,2}[* ]' | tr -d '* ' | sort -nu |
      comm -23 <(sort) <(sort codes) | sed "s|^|${page##*/}: exit status |" >unknown
    [ ! -s unknown ] || { cat unknown && return 1; }
  done
}
