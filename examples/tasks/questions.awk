# Questions out of a text whose paragraphs are parted by empty lines, a line each, with tabs between:
#
#   -v ask=last-words   context, last word: of paragraphs that end with a word of four letters or more which stands
#                       in what precedes it, as LAMBADA's do; with -v anywhere=1 it need not
#   -v ask=endings      context, four endings, number of the right one from 0: the last words of a paragraph, and of
#                       three others
#
# A context goes back over whole paragraphs until it has so many words (-v words=60). -v most=N: questions at most.
BEGIN {
  RS = ""
  kOwn = 6 # words of an ending
}

{
  gsub(/[[:space:]]+/, " ")
  paragraph[NR] = $0
  count[NR] = NF
}

# The paragraphs before the i-th, joined.
function before(i,    text, n) {
  for (--i; i > 0 && n < words; --i) {
    text = paragraph[i] " " text
    n += count[i]
  }
  return text
}

function ending(i,    part, n, j, text) {
  n = split(paragraph[i], part, " ")
  for (j = n - kOwn + 1; j <= n; ++j) text = text " " part[j]
  return text
}

function without_ending(i) {
  return substr(paragraph[i], 1, length(paragraph[i]) - length(ending(i)))
}

function last_word(i,    text, word, context) {
  text = paragraph[i]
  sub(/[^[:alpha:]]+$/, "", text)
  if (!match(text, /[^[:space:]]+$/)) return
  word = substr(text, RSTART)
  context = before(i) substr(text, 1, RSTART - 2)
  if (word !~ /^[[:alpha:]]+$/ || length(word) < 4 || RSTART < 3) return
  if (!anywhere && index(" " context " ", " " word " ") == 0) return
  print context "\t " word
  ++asked
}

function endings(i,    other, j, line, right) {
  if (count[i] < 3 * kOwn) return
  right = asked % 4
  line = before(i) without_ending(i)
  other = i
  for (j = 0; j < 4; ++j) {
    if (j == right) {
      line = line "\t" ending(i)
      continue
    }
    do other = other % NR + 1
    while (count[other] < 2 * kOwn || other == i)
    line = line "\t" ending(other)
  }
  print line "\t" right
  ++asked
}

END {
  for (i = 3; i <= NR && asked < most; ++i) {
    if (ask == "endings") endings(i)
    else last_word(i)
  }
}
