# The errors of each model at the contexts that matter, and whether each statement holds; the maps' disentanglement.
#
# stdin: for each curve a line "# MODEL SPLIT P1 P2 P3 LCM" and eval-forecast's table; then "# maps" and lines
# "SEED MAP ROW COLUMN MODULUS". stdout: a table.
#
# A column is the mean error over contexts: start (before P1), after P1 (until P2), after P2 (until P3), after P3 (until
# 1.6 P3), before the LCM (its last third), after it (until 1.4 LCM). A statement holds if
#   one head: before the LCM the error is at least 0.8 of that at the start, after it at most 0.6 of that before;
#   three heads: after each period it is at most 0.9 of that before, after the longest at most half of the start's, and
#     nowhere above 1: points on the circle that nobody knows are 0.8 apart, only a forecast that runs away is farther.
# Maps: of each row's squared moduli (of each column's where a head is a column) the largest has a share; the least of
# all shares says how well the heads divide the moons. Disentangled: at least 0.9, each moon has a head of its own, and
# the three maps agree on it.

BEGIN {
  OFS = "\t"
  unit = 800 / 18
  print "model", "split", "start", "after P1", "after P2", "after P3", "before LCM", "after LCM", "last", "holds"
}

$1 == "#" {
  if (model != "") finish()
  model = $2
  split_name = $3
  for (i = 1; i <= 4; ++i) period[i] = $(3 + i) * unit
  n = 0
  next
}

model == "maps" {
  square[$1, $2, $3, $4] = $5 * $5
  seeds[$1] = 1
  next
}

$1 != "context" {
  context[++n] = $1
  error[n] = $2
}

END { judge() }

function mean(from, to,   i, sum, count) {
  for (i = 1; i <= n; ++i)
    if (context[i] >= from && context[i] <= to) {
      sum += error[i]
      ++count
    }
  return count ? sum / count : "-"
}

function finish(   start, after, before, holds, most, i) {
  start = mean(1, .95 * period[1])
  for (i = 1; i <= n; ++i) if (error[i] > most) most = error[i]
  for (i = 1; i <= 3; ++i) after[i] = mean(1.05 * period[i], i < 3 ? .98 * period[i + 1] : 1.6 * period[3])
  before = mean(.67 * period[4], .98 * period[4])
  after[4] = mean(1.05 * period[4], 1.4 * period[4])
  if (model ~ /^one/)
    holds = before >= .8 * start && after[4] <= .6 * before
  else
    holds = after[1] <= .9 * start && after[2] <= .9 * after[1] && after[3] <= .9 * after[2] && after[3] <= .5 * start && most <= 1
  print model, split_name, show(start), show(after[1]), show(after[2]), show(after[3]), show(before), show(after[4]), \
    show(error[n]), holds ? "yes" : "no"
  held[model] += holds
}

function show(x) { return x == "-" ? x : sprintf("%.3f", x) }

# Share of the head's largest squared modulus in a map; whose: that moon.
function share(seed, map, head,   moon, x, sum, most) {
  most = -1
  for (moon = 0; moon < 3; ++moon) {
    x = map == "c_proj" ? square[seed, map, moon, head] : square[seed, map, head, moon]
    sum += x
    if (x > most) {
      most = x
      whose = moon
    }
  }
  return most / sum
}

function judge(   seed, least, agree, head, moons, key, x, converged, tried) {
  print ""
  print "seed", "least share", "disentangled", "three heads hold", "converged"
  for (seed = 1; seed <= 1000; ++seed) {
    if (!(seed in seeds)) continue
    least = 1
    agree = 1
    moons = ""
    for (head = 0; head < 3; ++head) {
      x = share(seed, "key", head)
      key = whose
      if (x < least) least = x
      x = share(seed, "value", head)
      if (whose != key) agree = 0
      if (x < least) least = x
      x = share(seed, "c_proj", head)
      if (whose != key) agree = 0
      if (x < least) least = x
      if (index(moons, key)) agree = 0
      moons = moons key
    }
    x = least >= .9 && agree
    ++tried
    converged += x && held["three-" seed] == 2
    print seed, sprintf("%.3f", least), x ? "yes" : "no", held["three-" seed] + 0 " of 2", \
      x && held["three-" seed] == 2 ? "yes" : "no"
  }
  print "converged: " converged + 0 " of " tried
}
