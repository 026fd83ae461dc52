# verdicts.awk: the computation of tools/verdicts, which describes it.
#   awk -f student_t.awk -f binomial.awk -f verdicts.awk -v form=FORM -v root=CHECKOUT EXERCISES CLAIMS RECORDS...
# FORM is "lines", or "table PAPER" or "counts" for a Markdown table. An error is one line on stderr and exit 65.

BEGIN {
  FS = OFS = "\t"
  claim_columns = "paper place claim published setting test note"
  record_columns = "row setting seed figure unit tokens command revision date"
}

function fail(text) {
  print "verdicts: " text | "cat >&2"
  close("cat >&2")
  failed = 1
  exit 65
}

FNR == 1 { ++file; head = 0; folder = folder_of(FILENAME) }
/^#/ || /^[ \t]*$/ { next }
file == 1 {
  if (NF != 2 || $2 !~ /^[A-Za-z0-9_.\/ -]+$/) fail(FILENAME ":" FNR ": takes a prefix of records, a tab and paths")
  prefixes[++n_prefixes] = $1
  paths[$1] = $2
  next
}
!head { head = 1; check_head(file == 2 ? claim_columns : record_columns); next }
file == 2 { read_claim(); next }
{ read_record() }

function folder_of(name,    part, n) {
  n = split(name, part, "/")
  return n > 1 ? part[n - 1] : "."
}

function check_head(columns,    line) {
  line = $0
  gsub(/\t/, " ", line)
  if (line != columns) fail(FILENAME ":" FNR ": the head has to be \"" columns "\", with tabs between")
}

function read_claim(    c) {
  if (NF != 7) fail(FILENAME ":" FNR ": " NF " columns, not 7")
  c = ++n_claims
  paper[c] = $1; place[c] = $2; claim[c] = $3; published[c] = $4; setting[c] = $5; test[c] = $6; note[c] = $7
  where[c] = FILENAME ":" FNR
  if (!($1 in paper_seen)) { paper_seen[$1] = 1; papers[++n_papers] = $1 }
}

# A record is figure[key, seed] of a key FOLDER/SETTING:ROW@UNIT; the last of several with equal key and seed counts.
function read_record(    key, at, ends) {
  if (NF != 9) fail(FILENAME ":" FNR ": " NF " columns, not 9")
  if ($1 !~ /^[^ :@<>=+-][^ :@]*$/ || $2 !~ /^[^ :@]+$/) fail(FILENAME ":" FNR ": row and setting have no space, \":\" or \"@\"")
  if (is_number($1) || $1 ~ /^(and|within)$/) fail(FILENAME ":" FNR ": row \"" $1 "\" is a number or a word of tests")
  if ($3 !~ /^(-|0|[1-9][0-9]*|(0|[1-9][0-9]*)-[1-9][0-9]*)$/) fail(FILENAME ":" FNR ": seed \"" $3 "\" is no number, no range and no \"-\"")
  if (split($3, ends, "-") == 2 && ends[1] != "" && ends[1] + 0 >= ends[2] + 0) fail(FILENAME ":" FNR ": seeds \"" $3 "\": the second is not above the first")
  if ($4 !~ /^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9][0-9]?)?(±([0-9]+(\.[0-9]+)?|\?))?$/) fail(FILENAME ":" FNR ": figure \"" $4 "\" is no number")
  if (($3 ~ /[0-9]-/) != ($4 ~ /±/)) fail(FILENAME ":" FNR ": a range of seeds has a mean±deviation, one seed has one number")
  if ($5 !~ /^[^ @]+$/) fail(FILENAME ":" FNR ": unit \"" $5 "\" has to be a word without \"@\"")
  if ($8 !~ /^([0-9a-f]+(-dirty)?|unknown)$/) fail(FILENAME ":" FNR ": \"" $8 "\" is no git revision")
  at = folder "/" $2 ":" $1
  key = at "@" $5
  if (!(key in unit)) {
    unit[key] = $5
    if (at in unit_of) unit_of[at] = "several"
    else unit_of[at] = $5
  }
  if (key in seeds && (seeds[key] == "-") != ($3 == "-")) fail(FILENAME ":" FNR ": \"" $1 "\" has records with a seed and without one")
  if (!(key in seeds)) seeds[key] = $3
  else if (!((key, $3) in figure)) seeds[key] = seeds[key] " " $3
  figure[key, $3] = $4
  if (decimals($4) > most_decimals[key]) most_decimals[key] = decimals($4)
  revision[key, $3] = $8
}

END {
  if (failed) exit 65
  for (c = 1; c <= n_claims && !failed; c++) judge(c)
  if (failed) exit 65
  for (i = 1; i <= n_papers; i++) correct(papers[i])
  for (c = 1; c <= n_claims; c++) settle(c)
  if (form == "lines") print_lines()
  else if (form == "counts") print_counts()
  else print_table(substr(form, 7))
}

# ---- One claim: its test is comparisons joined by "and"; p_for and p_against are those of the whole claim. ----

function judge(c,    word, n, i, first, parts) {
  if (test[c] ~ /^(beyond|unread)$/) {
    if (note[c] == "") fail(where[c] ": \"" test[c] "\" needs its reason in the column note")
    state[c] = test[c] == "beyond" ? "beyond this scale" : "not read"
    return
  }
  if (test[c] == "unrun") { state[c] = "not run"; return }
  choose_setting(c)
  p_for[c] = 0; p_against[c] = 1; state[c] = "exact"
  n = split(test[c], word, " ")
  parts = 0
  first = 1
  for (i = 1; i <= n + 1; i++)
    if (i > n || word[i] == "and") {
      parts += chain(c, word, first, i - 1)
      first = i + 1
    }
  if (parts > 1) p_against[c] *= parts
  if (p_against[c] > 1) p_against[c] = 1
}

# choose_setting: of several settings that which has every row of the test with the most seeds, the first of equals; else the first.
function choose_setting(c,    list, word, n, m, i, j, least, most, best) {
  n = split(setting[c], list, " ")
  m = split(test[c], word, " ")
  most = 0; best = 1
  for (i = 1; i <= n; i++) {
    least = 1000
    for (j = 1; j <= m; j++)
      if (is_row(word, j) && word[j] !~ /:/ && seeds_of(list[i] ":" word[j]) < least) least = seeds_of(list[i] ":" word[j])
    if (least > most) { most = least; best = i }
  }
  setting[c] = list[best]
}
function is_number(word) { return word ~ /^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9][0-9]?)?$/ }
function is_row(word, j) { return !is_number(word[j]) && word[j] !~ /^([<>=+-]|and|within)$/ }
# The number of seeds of a row, 0 if it has no record; where nothing was trained no row has more.
function seeds_of(at,    list) {
  if (at in unit_of) at = at "@" unit_of[at]
  if (!(at in unit)) return at ~ /@several$/ ? 1 : 0
  if (seeds[at] == "-") return 1000
  return seeds[at] ~ /[0-9]-/ ? range_of(at) : split(seeds[at], list, " ")
}

# range_of(KEY): the number of seeds of its last range, which is then in the variable range.
function range_of(key,    list, n, ends) {
  n = split(seeds[key], list, " ")
  while (list[n] !~ /[0-9]-/) --n
  range = list[n]
  split(range, ends, "-")
  return ends[2] - ends[1] + 1
}

# Words FROM to TO are SUM REL SUM [REL SUM]... [within MARGIN]. Returns how many comparisons it is.
function chain(c, word, from, to,    margin, i, start, relation, next_relation, previous, parts, equal) {
  margin = equal = 0
  for (i = from; i <= to; i++) if (word[i] == "=") equal = 1
  if (to > from && word[to - 1] == "within") {
    margin = word[to]
    if (!is_number(margin) || margin <= 0) fail(where[c] ": \"within " margin "\": takes a number above 0")
    if (!equal) fail(where[c] ": \"within\" is of \"=\"; write a margin of \"<\" or \">\" into the sum")
    to -= 2
  }
  start = from
  relation = ""
  parts = 0
  for (i = from; i <= to + 1; i++)
    if (i > to || word[i] ~ /^[<>=]$/) {
      next_relation = i > to ? "" : word[i]
      if (relation != "") { compare(c, word, previous, relation, start, i - 1, margin); ++parts }
      previous = start
      relation = next_relation
      start = i + 1
    }
  if (parts == 0) fail(where[c] ": test \"" test[c] "\" has no comparison")
  return parts
}

# compare: one comparison. The terms of both sides, with their signs, are a contrast, whose sign or size is tested.
function compare(c, word, left, relation, right, last, margin,    first, t) {
  n_terms = any_log = several_units = 0
  common_unit = ""
  add_sum(c, word, left, right - 2, 1)
  add_sum(c, word, right, last, -1)
  if (several_units) fail(where[c] ": \"" test[c] "\" compares " (any_log ? "perplexities" : common_unit) " with other units")
  for (t = 1; t <= n_terms; t++)
    if (any_log && term[t] == "" && constant[t] <= 0) fail(where[c] ": \"" test[c] "\": a number beside perplexities is above 0")
  if (relation == "=" && margin <= 0) fail(where[c] ": \"=\" needs \"within MARGIN\"")
  contrast()
  weigh(relation, margin)
  if (part_state == "not run") { state[c] = "not run"; return }
  if (state[c] == "not run") return
  # What decides is the part whose evidence for the claim is least or, of a refuted claim, the one whose evidence against it is most.
  first = !(c in kind)
  if (first || part_for > p_for[c] || (part_state == "one" && state[c] != "one")) keep(c)
  if (first || part_against < p_against[c]) keep(c SUBSEP "against")
  favours[c] = (first || favours[c]) && holds
  if (part_state == "one") state[c] = "one"
  else if (part_state == "tested" && state[c] == "exact") state[c] = "tested"
  if (part_for > p_for[c]) p_for[c] = part_for
  if (part_against < p_against[c]) p_against[c] = part_against
  if (part_state == "tested" || part_state == "exact") tested[c] = 1
}

# keep(AS): what is printed of a comparison that decides.
function keep(as) {
  kind[as] = part_state; logarithm[as] = any_log
  difference[as] = mean; low[as] = part_low; high[as] = part_high
  count[as] = part_state == "exact" ? "-" : part_state == "one" ? 1 : n_pairs
}

# add_sum: words FROM to TO are terms, the signs of all but the first before them.
function add_sum(c, word, from, to, side,    i, sign, due) {
  sign = 1
  due = "term"
  for (i = from; i <= to; i++)
    if (word[i] ~ /^[+-]$/) {
      if (due == "term" && i > from) due = "error"
      if (due == "error") break
      sign = word[i] == "-" ? -1 : 1
      due = "term"
    } else {
      if (due != "term" || word[i] == "within") { due = "error"; break }
      add_term(c, word[i], sign * side)
      due = "sign"
    }
  if (due != "sign") fail(where[c] ": test \"" test[c] "\": a sum takes terms with one + or - between two")
}

# WORD is a number, or [FOLDER/SETTING:]ROW[@UNIT].
function add_term(c, word, sign,    at, key) {
  ++n_terms
  coefficient[n_terms] = sign
  if (is_number(word)) { constant[n_terms] = word; term[n_terms] = ""; return }
  if (word ~ /^[0-9.]+$/) fail(where[c] ": \"" word "\" is no number")
  at = word
  if (at !~ /:/) {
    if (setting[c] == "") fail(where[c] ": \"" word "\" has no setting")
    at = setting[c] ":" at
  }
  key = at
  if (at !~ /@/ && at in unit_of) {
    if (unit_of[at] == "several") fail(where[c] ": \"" word "\" has several units; write " word "@UNIT")
    key = at "@" unit_of[at]
  }
  term[n_terms] = key
  if (!((c, key) in used)) { used[c, key] = 1; uses[c, ++n_uses[c]] = key; shown_as[c, n_uses[c]] = word }
  if (!(key in unit)) return
  if (unit[key] == "perplexity") any_log = 1
  if (common_unit == "") common_unit = unit[key]
  else if (common_unit != unit[key]) several_units = 1
}

# decimals(TEXT): how many a figure has, less than none in thousands.
function decimals(text,    digits, power) {
  sub(/±.*/, "", text)
  digits = 0
  if (text ~ /\./) { digits = text; sub(/e.*/, "", digits); sub(/^[^.]*\./, "", digits); digits = length(digits) }
  if (text ~ /e/) { power = text; sub(/.*e/, "", power); digits -= power }
  return digits
}

# value(KEY, SEED): a figure as it is compared, the logarithm of a perplexity; also sets grain, the half of its last digit. A mere 0
# has as many digits as the row's other figures.
function value(key, seed,    text, v) {
  text = figure[key, seed]
  sub(/±.*/, "", text)
  v = text + 0
  grain = 0.5 * exp(-(text == "0" ? most_decimals[key] : decimals(text)) * log(10))
  if (!any_log) return v
  if (v <= 0) fail("a perplexity of " text " in " key)
  grain /= v
  return log(v)
}

# contrast: mean, error (its standard error), freedom and n_pairs of the sum of the terms; part_state is "not run", "exact" (nothing
# was trained), "one" (one seed of trained models) or "tested".
function contrast(    t, i, n, list, common, key, sum, squares, v, s, m, variance, top, floor, least, all) {
  part_state = "exact"
  mean = error = freedom = n_pairs = binary = 0
  floor = 0
  common = ""
  all = 1
  for (t = 1; t <= n_terms; t++) {
    key = term[t]
    if (key == "") continue
    if (!(key in unit)) { part_state = "not run"; return }
    if (seeds[key] == "-") continue
    if (seeds[key] ~ /[0-9]-/) all = 0
    common = common == "" ? " " seeds[key] " " : both(common, seeds[key])
    part_state = "tested"
  }
  n = split(common, list, " ")
  if (part_state == "exact") { mean = at_seed("-"); return }
  if (all && n >= 1) {
    sum = squares = 0
    for (i = 1; i <= n; i++) { v[i] = at_seed(list[i]); sum += v[i]; if (grains > floor) floor = grains }
    mean = sum / n
    n_pairs = n
    if (n == 1) { part_state = "one"; return }
    if (yes_or_no(list, n)) return
    for (i = 1; i <= n; i++) squares += (v[i] - mean) * (v[i] - mean)
    s = sqrt(squares / (n - 1))
    # Rounded figures cannot show that seeds differ by less than their last digit.
    if (s < floor) s = floor
    error = s / sqrt(n)
    freedom = n - 1
    return
  }
  # No seeds in common, or means and deviations of several: Welch's t.
  variance = top = 0
  least = 1e9
  for (t = 1; t <= n_terms; t++) {
    key = term[t]
    if (key == "" || seeds[key] == "-") { mean += coefficient[t] * fixed(t); continue }
    moments(key)
    mean += coefficient[t] * m_mean
    if (m_n < least) least = m_n
    if (m_n > 1) {
      variance += m_s * m_s / m_n
      top += m_s * m_s * m_s * m_s / (m_n * m_n * (m_n - 1))
    }
  }
  n_pairs = least
  if (least < 2) { part_state = "one"; return }
  error = sqrt(variance)
  freedom = variance * variance / top
}

# yes_or_no(LIST, N): is the contrast that of one row, whose figures at the N seeds are all 0 or 1, with numbers between 0 and 1? Then
# binary is set: successes of n_pairs seeds, chance, the share at which the contrast is 0, and direction, the row's coefficient.
function yes_or_no(list, n,    t, i, key) {
  if (any_log) return 0
  key = ""
  chance = 0
  for (t = 1; t <= n_terms; t++) {
    if (term[t] == "" || seeds[term[t]] == "-") { chance += coefficient[t] * fixed(t); continue }
    if (key != "") return 0
    key = term[t]
    direction = coefficient[t]
  }
  chance *= -direction
  if (chance <= 0 || chance >= 1) return 0
  successes = 0
  for (i = 1; i <= n; i++) {
    if (figure[key, list[i]] !~ /^[01]$/) return 0
    successes += figure[key, list[i]]
  }
  return binary = 1
}

function both(common, list,    word, n, i, result) {
  n = split(list, word, " ")
  result = " "
  for (i = 1; i <= n; i++) if (index(common, " " word[i] " ")) result = result word[i] " "
  return result
}

function fixed(t) {
  if (term[t] == "") { grain = 0; return any_log ? log(constant[t]) : constant[t] + 0 }
  return value(term[t], "-")
}

# at_seed(SEED): the contrast at one seed; also sets grains, how far rounding may move it.
function at_seed(seed,    t, sum) {
  sum = grains = 0
  for (t = 1; t <= n_terms; t++) {
    sum += coefficient[t] * (term[t] == "" || seeds[term[t]] == "-" ? fixed(t) : value(term[t], seed))
    grains += grain
  }
  return sum
}

# moments(KEY): m_n, m_mean and m_s of its seeds.
function moments(key,    list, n, i, v, sum, squares, widest, text) {
  n = split(seeds[key], list, " ")
  widest = 0
  if (seeds[key] ~ /[0-9]-/) {
    m_n = range_of(key)
    m_mean = value(key, range)
    text = figure[key, range]
    sub(/.*±/, "", text)
    if (text == "?") { m_n = 1; return }
    m_s = text + 0
    if (any_log) m_s /= exp(m_mean)
    m_s += grain
    return
  }
  sum = squares = 0
  for (i = 1; i <= n; i++) { v[i] = value(key, list[i]); sum += v[i]; if (grain > widest) widest = grain }
  m_n = n
  m_mean = sum / n
  for (i = 1; i <= n; i++) squares += (v[i] - m_mean) * (v[i] - m_mean)
  m_s = n > 1 ? sqrt(squares / (n - 1)) : 0
  if (m_s < widest) m_s = widest
}

# weigh: part_for and part_against, the p-values of one side for and against the comparison; part_low and part_high, the interval of
# 95 %; holds, whether the figures as they are agree with it.
function weigh(relation, margin,    lower, upper, reach) {
  part_low = part_high = mean
  if (part_state == "not run") return
  holds = relation == "<" ? mean < 0 : relation == ">" ? mean > 0 : (mean <= margin && mean >= -margin)
  if (part_state == "exact") { part_for = holds ? 0 : 1; part_against = holds ? 1 : 0; return }
  if (part_state == "one") { part_for = part_against = 1; return }
  if (binary) { weigh_shares(relation, margin); return }
  reach = error * student_quantile(0.025, freedom)
  part_low = mean - reach
  part_high = mean + reach
  if (relation == "=") {
    lower = student_upper((mean + margin) / error, freedom)
    upper = student_upper((margin - mean) / error, freedom)
    part_for = lower > upper ? lower : upper
    lower = student_upper(-(mean + margin) / error, freedom)
    upper = student_upper((mean - margin) / error, freedom)
    part_against = lower < upper ? lower : upper
    return
  }
  part_for = student_upper((relation == "<" ? -1 : 1) * mean / error, freedom)
  part_against = student_upper((relation == "<" ? 1 : -1) * mean / error, freedom)
}

# weigh_shares: the same by the exact binomial test.
function weigh_shares(relation, margin,    low, high, lower, upper) {
  low = binomial_low(successes, n_pairs, 0.025) - chance
  high = binomial_high(successes, n_pairs, 0.025) - chance
  part_low = direction > 0 ? low : -high
  part_high = direction > 0 ? high : -low
  if (relation == "=") {
    lower = binomial_upper(successes, n_pairs, chance - margin)
    upper = binomial_lower(successes, n_pairs, chance + margin)
    part_for = lower > upper ? lower : upper
    lower = binomial_lower(successes, n_pairs, chance - margin)
    upper = binomial_upper(successes, n_pairs, chance + margin)
    part_against = lower < upper ? lower : upper
    return
  }
  lower = binomial_lower(successes, n_pairs, chance)
  upper = binomial_upper(successes, n_pairs, chance)
  part_for = (relation == "<") == (direction > 0) ? lower : upper
  part_against = (relation == "<") == (direction > 0) ? upper : lower
}

# ---- Holm's correction within a paper, of the p-values of both sides. ----

function correct(name,    c, n, i, j, at, hold, most, p) {
  n = 0
  for (c = 1; c <= n_claims; c++)
    if (paper[c] == name && tested[c] && state[c] != "exact" && state[c] != "not run") {
      p = 2 * (p_for[c] < p_against[c] ? p_for[c] : p_against[c])
      raw[c] = p > 1 ? 1 : p
      at[++n] = c
    }
  for (i = 2; i <= n; i++) {
    hold = at[i]
    for (j = i - 1; j >= 1 && raw[at[j]] > raw[hold]; j--) at[j + 1] = at[j]
    at[j + 1] = hold
  }
  most = 0
  for (i = 1; i <= n; i++) {
    p = raw[at[i]] * (n - i + 1)
    if (p > 1) p = 1
    if (p > most) most = p
    holm[at[i]] = most
  }
}

function settle(c) {
  why[c] = note[c]
  verdict[c] = state[c]
  if (state[c] == "exact") verdict[c] = p_for[c] == 0 ? "shown" : "refuted"
  if (state[c] != "one" && state[c] != "tested") return
  if ((c in holm) && holm[c] < 0.05) verdict[c] = p_for[c] < p_against[c] ? "shown" : "refuted"
  else {
    verdict[c] = "not settled"
    why[c] = (state[c] == "one" ? "one seed, " : "") (favours[c] ? "points for it" : "points against it") (note[c] == "" ? "" : "; " note[c])
  }
}

# ---- What is printed. ----

function compact(v) { return v == 0 ? "0" : sprintf("%.3g", v) }
# As a number, or, of perplexities, as a ratio.
function as_said(as, v) { return logarithm[as] ? sprintf("%.3f", exp(v)) : sprintf("%.3g", v) }
# The comparison that decides; "" if none was made.
function decisive(c) { return !(c in kind) || state[c] == "not run" ? "" : verdict[c] == "refuted" ? c SUBSEP "against" : c }
function said_difference(as) { return as == "" ? "" : (logarithm[as] ? "ratio " : "") as_said(as, difference[as]) }
function said_end(as, end) { return kind[as] == "tested" ? as_said(as, end) : "" }

# mean_of(KEY, LIST): the mean of the figures of these seeds, or the only figure as it was recorded.
function mean_of(key, list,    seed, n, i, sum) {
  n = split(list, seed, " ")
  if (n == 1) return figure[key, seed[1]]
  for (i = 1; i <= n; i++) sum += figure[key, seed[i]]
  return sprintf("%.4g", sum / n)
}
# figures(C): each row of the test with its mean, over the seeds that all rows have, if there are any.
function figures(c,    i, key, common, text) {
  common = ""
  for (i = 1; i <= n_uses[c]; i++) {
    key = uses[c, i]
    if (key in unit && seeds[key] != "-") common = common == "" ? " " seeds[key] " " : both(common, seeds[key])
  }
  for (i = 1; i <= n_uses[c]; i++) {
    key = uses[c, i]
    if (key in unit) text = text (text == "" ? "" : ", ") shown_as[c, i] " " mean_of(key, common ~ /[0-9]/ && seeds[key] != "-" ? common : seeds[key])
  }
  return text
}

# age(C): "old" if code that one of the records exercises was changed since, with their number, "current", or "unknown".
function age(c,    i, j, n, list, key, old, known, all, answer) {
  old = known = all = 0
  for (i = 1; i <= n_uses[c]; i++) {
    key = uses[c, i]
    if (!(key in unit)) continue
    n = split(seeds[key], list, " ")
    for (j = 1; j <= n; j++) {
      answer = changes(key, revision[key, list[j]])
      ++all
      if (answer != "") ++known
      if (answer > 0) ++old
    }
  }
  if (all == 0) return ""
  return old ? "old: " old " of " all : known < all ? "unknown" : "current"
}

# changes(KEY, REVISION): how many commits since have touched what KEY exercises; "" where git cannot say.
function changes(key, rev,    i, best, command, answer) {
  best = ""
  for (i = 1; i <= n_prefixes; i++) if (index(key, prefixes[i]) == 1 && length(prefixes[i]) > length(best)) best = prefixes[i]
  if (best == "" || rev !~ /^[0-9a-f]+$/) return ""
  if (!((best, rev) in counted)) {
    command = "git -C '" root "' rev-list --count " rev "..HEAD -- " paths[best] " 2>/dev/null"
    answer = ""
    command | getline answer
    close(command)
    counted[best, rev] = answer
  }
  return counted[best, rev]
}

function print_lines(    c, as) {
  print "paper", "place", "claim", "verdict", "why", "setting", "figures", "published", "difference", "low", "high", "seeds", "p", "p of Holm", "records"
  for (c = 1; c <= n_claims; c++) {
    as = decisive(c)
    print paper[c], place[c], claim[c], verdict[c], why[c], setting[c], figures(c), published[c], said_difference(as), \
      said_end(as, low[as]), said_end(as, high[as]), count[as], \
      ((c in raw) ? compact(raw[c]) : ""), ((c in holm) ? compact(holm[c]) : ""), age(c)
  }
}

function cell(text) {
  gsub(/\|/, "\\|", text)
  return text
}
function print_table(name,    c, as, interval, rows, beyond, unread) {
  if (!(name in paper_seen)) fail("a table of \"" name "\": no claim is of this paper")
  beyond = unread = rows = 0
  for (c = 1; c <= n_claims; c++) {
    if (paper[c] != name) continue
    if (verdict[c] == "beyond this scale") { ++beyond; continue }
    if (verdict[c] == "not read") { ++unread; continue }
    if (++rows == 1) {
      print "| place | claim | published | records | here | difference, 95 % interval | seeds | verdict |"
      print "|---|---|---|---|---|---|---|---|"
    }
    as = decisive(c)
    interval = kind[as] == "tested" ? " (" as_said(as, low[as]) " to " as_said(as, high[as]) ")" : ""
    printf "| %s | %s | %s | %s | %s | %s | %s | **%s**%s |\n", cell(place[c]), cell(claim[c]), cell(published[c]), setting[c], cell(figures(c)), \
      said_difference(as) interval, count[as], verdict[c], (why[c] == "" ? "" : cell(": " why[c]))
  }
  if (name != "own") printf "\nOther statements of this paper: %d beyond this scale, %d not read; `tools/verdicts` lists them.\n", beyond, unread
}

function print_counts(    i, j, c, verdicts, n_verdicts, number, line) {
  n_verdicts = split("shown,refuted,not settled,not run,beyond this scale,not read", verdicts, ",")
  for (c = 1; c <= n_claims; c++) {
    if (paper[c] == "own") continue
    ++number[paper[c], verdict[c]]; ++number["all", verdict[c]]; ++number[paper[c]]; ++number["all"]
  }
  print "| paper | statements | shown | refuted | not settled | not run | beyond this scale | not read |"
  print "|---|---|---|---|---|---|---|---|"
  papers[n_papers + 1] = "all"
  for (i = 1; i <= n_papers + 1; i++) {
    if (papers[i] == "own") continue
    line = "| " papers[i] " | " (number[papers[i]] + 0)
    for (j = 1; j <= n_verdicts; j++) line = line " | " (number[papers[i], verdicts[j]] + 0)
    print line " |"
  }
}
