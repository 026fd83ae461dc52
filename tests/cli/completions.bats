#!/usr/bin/env bats
# What shells offer at a TAB, and what --help and the manuals say of the same flags.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
  completions=$BIN/../completions
}

# offered WORD...: what bash offers for the last of them, one a line. PATH is empty: no program runs at a TAB.
offered() {
  bash -c '
    PATH=
    . "$1/${2##*/}.bash"
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    function=$(complete -p "$1")
    function=${function#* -F }
    "${function%% *}" "$1"
    [ "${#COMPREPLY[@]}" -eq 0 ] || printf "%s\n" "${COMPREPLY[@]}"' bash "$completions" "$@"
}

offers() { # EXPECTED WORD...
  local expected=$1 got
  shift
  got=$(offered "$@" | tr '\n' ' ')
  [ "$got" = "$expected" ] || { echo "$*: offered '$got'" && return 1; }
}

@test "bash: flags, values of choices, defaults of numbers, commands; nothing runs" {
  offers '--init ' train --ini
  offers 'transformer transformer-xl ' train --arch tr
  offers 'transformer transformer-xl ' train --arch = tr
  offers 'gpt2 fairseq fan-in depth ' train --init =
  offers '4 ' train --layers ''
  offers '' train --order ''
  # Of a list the words that it does not have yet, with what stands before them.
  offers 'none local long ext ' train --memory ''
  offers 'local,long ' train --memory local,lo
  offers '' train --memory ext,local,loc
  offers 'long,local ' eval-ppl --memory = long,
  offers '512 ' train --layer-memory ''
  offers 'cuda ' train --device cu
  [ -z "$(offered build-ngrams --buffer-size x)" ]
  offers '' train x
  offers 'merge ' shard mer
  offers '--max-documents ' shard split --max-d
  offers '' shard split x
  [ -z "$(offered shard --doc)" ]
  for program in "$BIN"/*; do
    name=${program##*/}
    [[ $(offered "$name" --hel) == --help ]]
    bash -n "$completions/$name.bash"
  done
}

@test "the words that are offered for a list are those of its help" {
  for program in "$BIN"/*; do
    name=${program##*/}
    "$program" --print-flags | awk -F '\t' '$3 == "TEXT" && ($2 == "--memory" || $2 == "--device") { print $1 "|" $2 "|" $5 }' >flags
    while IFS='|' read -r command flag help; do
      words=$(offered "$name" ${command:+"$command"} "$flag" '')
      [ -n "$words" ]
      for word in $words; do
        [[ $help == *"$word"* ]] || { echo "$name $command $flag: $word is not in '$help'" && return 1; }
      done
    done <flags
  done
}

@test "bash: behind tessera stand the programs, and behind each its own" {
  offers 'train ' tessera tra
  offers '--version ' tessera --vers
  offers 'eval-forecast eval-ppl eval-regbench eval-ruler ' tessera help eval
  offers 'tutorial ' tessera help tut
  for page in "$root"/man/tessera-*.7.scd; do
    page=${page##*/tessera-} page=${page%.7.scd}
    offers "$page " tessera help "$page"
  done
  offers 'transformer transformer-xl ' tessera train --arch tr
  offers 'merge ' tessera shard mer
  offers '--max-documents ' tessera shard split --max-d
}

@test "fish offers the same" {
  command -v fish >/dev/null || skip "fish is not installed"
  export HOME=$PWD
  ask() { fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$completions/$1.fish" "$2" | cut -f 1 | sort | tr '\n' ' '; }
  [ "$(ask train 'train --arch tr')" = 'transformer transformer-xl ' ]
  [[ "$(ask train 'train --ini')" == *'--init '* ]]
  [ "$(ask train 'train --layers ')" = '4 ' ]
  [ "$(ask train 'train --memory l')" = 'local long ' ]
  [ "$(ask train 'train --memory local,e')" = 'local,ext ' ]
  [[ "$(ask train 'train --no-ti')" == *'--no-tied '* ]]
  [ "$(ask shard 'shard mer')" = 'merge ' ]
  [[ "$(ask shard 'shard split --max-d')" == *'--max-documents '* ]]
  [ "$(ask tessera 'tessera tra')" = 'train ' ]
  [ "$(ask tessera 'tessera train --arch tr')" = 'transformer transformer-xl ' ]
  [[ "$(ask tessera 'tessera shard split --max-d')" == *'--max-documents '* ]]
  [[ "$(ask tessera 'tessera --vers')" == *'--version '* ]]
}

# zsh has a terminal only where it runs in one: what it would insert is asked of it through a pseudo-terminal.
@test "zsh offers the same" {
  command -v zsh >/dev/null || skip "zsh is not installed"
  zsh -f -c 'zmodload zsh/zpty && zpty z true' 2>/dev/null || skip "no pseudo-terminal can be opened here"
  mkdir functions
  for file in "$completions"/*.zsh; do
    name=${file##*/}
    zsh -n "$file"
    cp "$file" "functions/_${name%.zsh}"
  done
  cat >ask.zsh <<'END'
zmodload zsh/zpty
zpty z zsh -f -i
read_on() { local piece; while zpty -r z piece; do print -rn -- "$piece"; [[ $piece == *"$1"* ]] && return; done }
zpty -w z "PS1= PS2= HISTFILE=; stty rows 200 cols 200; fpath=($PWD/functions \$fpath); autoload -Uz compinit; compinit -u -d $PWD/dump"
zpty -w z "zstyle ':completion:*' list-prompt ''; LISTMAX=0; setopt no_always_last_prompt; bindkey '^I' complete-word"
zpty -w z "show() { print -r -- \"<\$BUFFER>\"; zle kill-buffer }; zle -N show; bindkey '^X' show; print re'ady'"
read_on ready >/dev/null
zpty -w -n z "$1"$'\t\x18'
read_on '>'
END
  ask() { timeout 60 zsh -f ask.zsh "$1" | tr -d '\r' | sed -n 's/.*<\(.*\)>.*/\1/p' | tail -n 1; }
  [ "$(ask 'train --ini')" = 'train --init=' ]
  [ "$(ask 'train --init=fai')" = 'train --init=fairseq ' ]
  [[ "$(ask 'train --memory=loca')" == 'train --memory=local'* ]]
  [[ "$(ask 'train --memory=local,ex')" == 'train --memory=local,ext'* ]]
  [ "$(ask 'shard mer')" = 'shard merge ' ]
  [ "$(ask 'shard split --max-docum')" = 'shard split --max-documents=' ]
  [ "$(ask 'tessera tra')" = 'tessera train ' ]
  [ "$(ask 'tessera train --init=fai')" = 'tessera train --init=fairseq ' ]
}

@test "every flag says its default in --help, or what stands for it" {
  for program in "$BIN"/*; do
    "$program" --print-flags >flags
    [ "$(wc -l <flags)" -gt 3 ]
    # With a value: =default, or [what there is without]. A switch of two names: =on or =off.
    awk -F '\t' -v program="${program##*/}" '
      NF != 6 { print program ": " $0; bad = 1 }
      $2 !~ /^-/ { next }
      ($3 != "" || $2 ~ /,--no-/) && $4 == "" && $5 !~ /\[.+\]/ { print program ": " $2 ": no default: " $5; bad = 1 }
      $3 ~ /^(N|X|BYTES)$/ && $5 !~ /[a-z]/ { print program ": " $2 ": no unit"; bad = 1 }
      END { exit bad }' flags
  done
  train --help=all | grep -Eq '^  --layers N=4 '
  train --help=all | grep -Eq '^  --tied,--no-tied=on '
  train --help=all | grep -Eq '^  --plan,--no-plan=off '
  train --help=all | grep -Eq '^  --order TEXT .*\[not set\]$'
  bm25-pack --help | grep -Eq '^  --buffer-size BYTES='
}

@test "a manual has every flag of its program, and none that it has not" {
  for program in "$BIN"/*; do
    name=${program##*/}
    "$program" --print-flags >table
    cut -f 2 table | tr , '\n' | grep '^--' | grep -v '^--no-' | sort -u >flags
    awk -f "$root/cmake/manual_options.awk" table "$root/man/$name.1.scd" >page
    grep -oE -- '--[a-z0-9][a-z0-9-]*' page | sort -u >said
    comm -23 flags said | sed "s/^/$name: not in its manual: /" >missing
    awk -v name="$name" 'before ~ /^\*--[a-z0-9-]+\*$/ && !/^\t/ { print name ": without a text: " before } { before = $0 }' page >>missing
    # Options are described by what is indented under them.
    awk '/^\t/ && before ~ /^\*-/ { print before } { before = $0 }' page | grep -oE -- '--[a-z0-9][a-z0-9-]*' | grep -v '^--no-' | sort -u | comm -13 flags - |
      sed "s/^/$name: only in its manual: /" >>missing
    [ ! -s missing ] || { cat missing && return 1; }
  done
}

@test "an option that a page leaves out stands in the manual with the program's own words" {
  # An option that is only spoken of has no entry.
  printf '# TEXT\n\n*--late* is late.\n\n# OPTIONS\n\n## Model\n\nSee *--kind*.\n\n*--layers*\n\n## Other\n\n# EXIT STATUS\n' >page
  {
    printf '\t--layers\tN\t4\tnumber of layers\tModel\n'
    printf '\t-k,--kind\ta|b\ta\twhat it_is\tModel\n'
    printf '\t--late,--no-late\t\toff\twait [never]\tLast\n'
    printf '\t--more\tN\t\tmore [1]\tOptions\n'
  } >table
  awk -f "$root/cmake/manual_options.awk" table page | diff - <(printf '%s\n' '# TEXT' '' '*--late* is late.' '' '# OPTIONS' '' '## Model' '' 'See *--kind*.' '' \
    '*--layers* _N_' $'\tNumber of layers [4].' '' '*-k*, *--kind* *a*|*b*' $'\tWhat it\\_is [a].' '' '## Other' '' '## Last' '' \
    '*--late*, *--no-late*' $'\tWait [never].' '' '## More options' '' '*--more* _N_' $'\tMore [1].' '' '# EXIT STATUS')
}
