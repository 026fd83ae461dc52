# completions.awk: what a shell offers at a TAB, out of tables as --print-flags prints them. No program runs then.
#
#   awk -f completions.awk -v shell=bash|zsh|fish [-v prefix=P] NAME.flags      of the program NAME, installed as PNAME
#   awk -f completions.awk -v shell=bash|zsh|fish -v whole=tessera NAME.flags... of tessera, behind which all of them stand
#
# A switch offers nothing, a choice its values, a number its default, a list the words that it may still take behind a comma,
# anything else files.

BEGIN { FS = "\t" }

FNR == 1 {
  program = FILENAME
  sub(/.*\//, "", program)
  sub(/\.flags$/, "", program)
  if (program != whole) programs[++n_programs] = program
}
{ n = ++rows[program]; command[program, n] = $1; names[program, n] = $2; value[program, n] = $3; usual[program, n] = $4; help[program, n] = $5 }
$2 == "" { commands[program] = commands[program] (commands[program] == "" ? "" : " ") $1; summary[program, $1] = $5 }

END {
  if (shell == "bash") bash()
  else if (shell == "zsh") zsh()
  else fish()
}

function id(name) { gsub(/[^A-Za-z0-9]/, "_", name); return "_tessera_" name }
function is_flag(p, i) { return names[p, i] ~ /^-/ }
# What a text may be that is one of a few words, or several with commas between, and does not say so in its table's row.
function words(p, i) {
  if (value[p, i] != "TEXT") return ""
  if (names[p, i] == "--device") return "cpu cuda auto"
  if (names[p, i] == "--memory") return p == "train" ? "none local long ext" : "none local long"
  return ""
}
function is_list(p, i) { return names[p, i] == "--memory" && words(p, i) != "" }
# What may be offered for a flag's value, space-separated; nothing: files.
function values(p, i,   v) {
  v = value[p, i]
  if (words(p, i) != "") return words(p, i)
  if (names[p, i] == "--layer-memory") return usual[p, i] == "" ? "512" : usual[p, i]
  if (v == "N" || v == "X" || v == "BYTES") return usual[p, i] == "" ? "0" : usual[p, i]
  if (index(v, "|")) { gsub(/\|/, " ", v); return v }
  return ""
}
function flags(p, c,   i, all) {
  for (i = 1; i <= rows[p]; i++) if (command[p, i] == c && is_flag(p, i)) all = all " " names[p, i]
  gsub(/,/, " ", all)
  return substr(all, 2)
}
function list_programs(   i, all) {
  for (i = 1; i <= n_programs; i++) all = all " " programs[i]
  return substr(all, 2)
}

# What tessera help shows: programs, and the pages tessera-NAME(7).
function list_pages() { return list_programs() " tour tutorial your-model memories chat cluster gpu python" }

# --- bash

function bash_patterns(p, i,   k, m, one, all) {
  m = split(names[p, i], one, ",")
  for (k = 1; k <= m; k++) all = all (k > 1 ? " | " : "") "'" command[p, i] " " one[k] "'"
  return all
}
function bash_program(p,   i, k, m, one, v) {
  printf "%s() {\n  local word before command=''\n  _tessera_where '%s'\n  case \"$command $before\" in\n", id(p), commands[p]
  for (i = 1; i <= rows[p]; i++) {
    if (!is_flag(p, i) || value[p, i] == "") continue
    v = values(p, i)
    printf "    %s) %s ;;\n", bash_patterns(p, i), v == "" ? ":" : (is_list(p, i) ? "_tessera_list '" : "_tessera_offer '") v "'"
  }
  printf "    *)\n      case $command in\n"
  m = split(commands[p], one, " ")
  for (k = 1; k <= m; k++) printf "        %s) _tessera_flags '%s' ;;\n", one[k], flags(p, one[k])
  printf "        *) _tessera_flags '%s' '%s' ;;\n      esac\n      ;;\n  esac\n}\n", flags(p, ""), commands[p]
}
function bash(   i) {
  print "# bash completion; made by the build."
  print "_tessera_offer() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$word\"); }"
  print "# Words behind the last comma that do not stand before it; no space follows, but perhaps another comma."
  print "_tessera_list() { # WORDS"
  print "  local last=${word##*,} one left=''"
  print "  local head=${word%\"$last\"}"
  print "  for one in $1; do"
  print "    if [[ -z $head || ( ,$head != *,$one,* && $one != none ) ]]; then left+=\" $one\"; fi"
  print "  done"
  print "  mapfile -t COMPREPLY < <(compgen -P \"$head\" -W \"$left\" -- \"$last\")"
  print "  compopt -o nospace 2>/dev/null"
  print "}"
  print "_tessera_flags() { # FLAGS [WORDS]"
  print "  if [[ $word == -* ]]; then _tessera_offer \"$1\"; elif [ -n \"${2:-}\" ]; then _tessera_offer \"$2\"; fi"
  print "}"
  print "# The word that is written, what stands before it, and which of the COMMANDS it belongs to."
  print "_tessera_where() { # COMMANDS"
  print "  local at=${tessera_at:-0}"
  print "  COMPREPLY=()"
  print "  word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}"
  print "  if [ \"$word\" = '=' ]; then"
  print "    word=''"
  print "  elif [ \"$before\" = '=' ]; then"
  print "    before=${COMP_WORDS[COMP_CWORD - 2]}"
  print "  fi"
  print "  if [ \"$COMP_CWORD\" -gt $((at + 1)) ] && [[ \" $1 \" == *\" ${COMP_WORDS[at + 1]} \"* ]]; then command=${COMP_WORDS[at + 1]}; fi"
  print "}"
  for (i = 1; i <= n_programs; i++) bash_program(programs[i])
  if (whole == "") {
    printf "complete -o bashdefault -o default -F %s %s\n", id(program), prefix program
    return
  }
  printf "_tessera() {\n  local tessera_at=1 word=${COMP_WORDS[COMP_CWORD]}\n  COMPREPLY=()\n"
  printf "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    _tessera_flags '%s' 'help %s'\n    return\n  fi\n", flags(whole, ""), list_programs()
  printf "  case ${COMP_WORDS[1]} in\n    help) _tessera_offer '%s' ;;\n", list_pages()
  for (i = 1; i <= n_programs; i++) printf "    %s) %s ;;\n", programs[i], id(programs[i])
  printf "  esac\n}\ncomplete -o bashdefault -o default -F _tessera %s\n", whole
}

# --- zsh

# Within single quotes. (What gsub makes of backslashes before a quote depends on whose awk it is.)
function zsh_text(text,   k, m, part) {
  gsub(/[][\\:]/, "\\\\&", text)
  m = split(text, part, "'")
  text = part[1]
  for (k = 2; k <= m; k++) text = text "'\\''" part[k]
  return text
}
function zsh_action(p, i,   v) {
  v = values(p, i)
  if (value[p, i] == "") return ""
  if (is_list(p, i)) return ":list:_values -s , word " v
  return ":" (index(value[p, i], "|") ? "value" : value[p, i]) ":" (v == "" ? "_files" : "(" zsh_text(v) ")")
}
function zsh_flags(p, c, indent,   i, k, m, one, apart) {
  for (i = 1; i <= rows[p]; i++) {
    if (command[p, i] != c || !is_flag(p, i)) continue
    m = split(names[p, i], one, ",")
    apart = m > 1 ? "(" one[1] " " one[2] ")" : ""
    for (k = 1; k <= m; k++)
      printf "%s'%s%s%s[%s]%s' \\\n", indent, apart, one[k], value[p, i] == "" ? "" : (one[k] ~ /^--/ ? "=" : "+"), zsh_text(help[p, i]), zsh_action(p, i)
  }
}
function zsh_program(p,   k, m, one) {
  printf "%s() {\n", id(p)
  m = split(commands[p], one, " ")
  if (m == 0) {
    print "  _arguments -s -S \\"
    zsh_flags(p, "", "    ")
    print "    '*:file:_files'\n}"
    return
  }
  print "  local curcontext=$curcontext state line\n  local -a commands=("
  for (k = 1; k <= m; k++) printf "    '%s:%s'\n", one[k], zsh_text(summary[p, one[k]])
  print "  )\n  _arguments -C -S \\"
  zsh_flags(p, "", "    ")
  print "    '1:command:{_describe command commands}' '*::argument:->argument'"
  print "  [[ $state == argument ]] || return\n  case $line[1] in"
  for (k = 1; k <= m; k++) {
    printf "    %s)\n      _arguments -s -S \\\n", one[k]
    zsh_flags(p, one[k], "        ")
    print "        '*:file:_files'\n      ;;"
  }
  print "  esac\n}"
}
function zsh(   i) {
  printf "#compdef %s\n# zsh completion; made by the build.\n", whole == "" ? prefix program : whole
  for (i = 1; i <= n_programs; i++) zsh_program(programs[i])
  if (whole == "") {
    printf "%s \"$@\"\n", id(program)
    return
  }
  print "_tessera() {\n  local curcontext=$curcontext state line\n  _arguments -C -S \\"
  zsh_flags(whole, "", "    ")
  printf "    '1:program:(help %s)' '*::argument:->argument'\n", list_programs()
  printf "  [[ $state == argument ]] || return\n  case $line[1] in\n    help) _values page %s ;;\n", list_pages()
  for (i = 1; i <= n_programs; i++) printf "    %s) %s ;;\n", programs[i], id(programs[i])
  print "  esac\n}\n_tessera \"$@\""
}

# --- fish

function fish_text(text) {
  gsub(/[\\']/, "\\\\&", text)
  return "'" text "'"
}
function fish_flag(name, p, i, condition,   k, m, one, v, text) {
  m = split(names[p, i], one, ",")
  v = values(p, i)
  text = ""
  for (k = 1; k <= m; k++) {
    if (value[p, i] == "" && k > 1 && one[k] ~ /^--no-/) continue
    text = text (one[k] ~ /^--/ ? " -l " substr(one[k], 3) : " -s " substr(one[k], 2))
  }
  if (value[p, i] != "") text = text (v == "" ? " -r" : " -x -a " fish_text(is_list(p, i) ? "(__fish_append , " v ")" : v))
  printf "complete -c %s%s%s -d %s\n", name, condition, text, fish_text(help[p, i])
  if (value[p, i] == "" && m > 1 && one[2] ~ /^--no-/)
    printf "complete -c %s%s -l %s -d %s\n", name, condition, substr(one[2], 3), fish_text("not " one[1])
}
function fish_seen(what) { return "__fish_seen_subcommand_from " what }
function fish_program(name, p, first,   i, k, m, one, condition) {
  m = split(commands[p], one, " ")
  for (k = 1; k <= m; k++) {
    condition = " -n '" first (first == "" ? "" : "; and ") "not " fish_seen(commands[p]) "'"
    printf "complete -c %s%s -f -a %s -d %s\n", name, condition, one[k], fish_text(summary[p, one[k]])
  }
  for (i = 1; i <= rows[p]; i++) {
    if (!is_flag(p, i)) continue
    condition = first
    if (command[p, i] != "") condition = condition (first == "" ? "" : "; and ") fish_seen(command[p, i])
    else if (m > 0) condition = condition (first == "" ? "" : "; and ") "not " fish_seen(commands[p])
    fish_flag(name, p, i, condition == "" ? "" : " -n '" condition "'")
  }
}
function fish(   i) {
  print "# fish completion; made by the build."
  if (whole == "") {
    fish_program(prefix program, program, "")
    return
  }
  fish_program(whole, whole, "not " fish_seen("help " list_programs()))
  printf "complete -c %s -n 'not %s' -f -a 'help %s'\n", whole, fish_seen("help " list_programs()), list_programs()
  printf "complete -c %s -n '%s' -f -a '%s'\n", whole, fish_seen("help"), list_pages()
  for (i = 1; i <= n_programs; i++) fish_program(whole, programs[i], fish_seen(programs[i]))
}
