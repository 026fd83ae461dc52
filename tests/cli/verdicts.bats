#!/usr/bin/env bats
# tools/verdicts and examples/figures: Student's t, the binomial distribution, the rules of verdicts on made-up records, the project's own claims, tables and figures.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
  mkdir -p tree/tools tree/examples/made
  cp "$root"/tools/verdicts "$root"/tools/*.awk tree/tools
  printf 'made/\ttools\n' >tree/examples/exercises.tsv
  printf 'paper\tplace\tclaim\tpublished\tsetting\ttest\tnote\n' >tree/examples/claims.tsv
  printf 'row\tsetting\tseed\tfigure\tunit\ttokens\tcommand\trevision\tdate\n' >tree/examples/made/records.tsv
}

# record ROW SEED FIGURE UNIT [SETTING]
record() { printf '%s\t%s\t%s\t%s\t%s\t10\tmake\tunknown\t2026-01-01\n' "$1" "${5:-s}" "$2" "$3" "$4" >>tree/examples/made/records.tsv; }

# records ROW UNIT FIGURE...: of seeds 1, 2, ...
records() {
  local row=$1 unit=$2 seed=0
  shift 2
  for figure; do record "$row" $((++seed)) "$figure" "$unit"; done
}

# claims TEST [NOTE] [PAPER]
claims() { printf '%s\ttable 1\ta claim\t\tmade/s\t%s\t%s\n' "${3:-paper}" "$1" "${2:-}" >>tree/examples/claims.tsv; }

# column NAME: of what verdicts prints, a line a claim.
column() {
  tree/tools/verdicts | awk -F '\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } { print $at }'
}

# refused WORDS...: exit 65 and one line with the words.
refused() {
  run --separate-stderr tree/tools/verdicts
  # shellcheck disable=SC2154  # stderr is bats'
  [ "$status" -eq 65 ] && [[ $stderr == *"$*"* ]] && [ "$(wc -l <<<"$stderr")" -eq 1 ] || { echo "exit $status: $stderr" && return 1; }
}

@test "Student's t has the quantiles and tails of the tables, with few and many degrees of freedom, and fractional ones" {
  cat >known.awk <<'END'
    # Is X the known value, to a millionth of it?
    function same(x, known) { if (x - known > 1e-6 * known || known - x > 1e-6 * known) { print x, "is not", known; bad = 1 } }
    BEGIN {
      same(student_quantile(0.025, 1), 12.706204736); same(student_quantile(0.025, 2), 4.302652730)
      same(student_quantile(0.025, 4), 2.776445105); same(student_quantile(0.005, 9), 3.249835542)
      same(student_quantile(0.025, 30), 2.042272456); same(student_quantile(0.05, 1000), 1.646378818)
      # Closed forms: one degree of freedom is Cauchy's distribution; two have 1/2 - t / (2 sqrt(2 + t^2)).
      same(student_upper(1, 1), 0.25); same(student_upper(-1, 1), 0.75); same(student_upper(0, 7), 0.5)
      same(student_upper(3, 2), 0.5 - 3 / (2 * sqrt(11))); same(student_upper(40, 2), 1 / (2 * sqrt(1602) * (sqrt(1602) + 40)) * 2)
      # Three and four, by their closed forms.
      pi = 3.14159265358979323846
      same(student_upper(2, 3), 0.5 - (atan2(2 / sqrt(3), 1) + (2 / sqrt(3)) / (1 + 4 / 3)) / pi)
      same(student_upper(1.5, 4), 0.5 - 3 / 8 * (1.5 / sqrt(1 + 1.5 ^ 2 / 4)) * (1 - 1.5 ^ 2 / (12 * (1 + 1.5 ^ 2 / 4))))
      # The quantile undoes the tail between whole numbers too.
      same(student_upper(student_quantile(0.01, 2.7), 2.7), 0.01)
      exit bad
    }
END
  awk -f "$root/tools/student_t.awk" -f known.awk
}

@test "the binomial distribution has the tails and the intervals of SciPy" {
  cat >known.awk <<'END'
    # Is X the known value, to a millionth of it?
    function same(x, known) { if (x - known > 1e-6 * known || known - x > 1e-6 * known) { print x, "is not", known; bad = 1 } }
    # binom.cdf(k, n, p), binom.sf(k - 1, n, p), and binomtest(k, n).proportion_ci(method="exact") of scipy.stats 1.17.1.
    function row(k, n, p, lower, upper, low, high) {
      same(binomial_lower(k, n, p), lower); same(binomial_upper(k, n, p), upper)
      same(binomial_low(k, n, 0.025), low); same(binomial_high(k, n, 0.025), high)
    }
    BEGIN {
      row(12, 20, 0.9, 0.0004156350188, 0.9999401415, 0.3605425873, 0.8088099393)
      row(3, 10, 0.5, 0.171875, 0.9453125, 0.06673951118, 0.6524528501)
      row(0, 5, 0.2, 0.32768, 1, 0, 0.5218237501)
      row(7, 7, 0.3, 1, 0.0002187, 0.5903836028, 1)
      row(190, 200, 0.9, 0.9964714345, 0.008071249955, 0.9099724623, 0.9757658345)
      row(1, 40, 0.3, 1.155120474e-05, 0.9999993633, 0.0006327449321, 0.1315858585)
      # What never happens, and what always does.
      same(binomial_upper(0, 5, -0.1), 0); same(binomial_lower(0, 5, -0.1), 1)
      same(binomial_upper(5, 5, 1.1), 1); same(binomial_lower(5, 5, 1.1), 0)
      exit bad
    }
END
  awk -f "$root/tools/student_t.awk" -f "$root/tools/binomial.awk" -f known.awk
}

@test "over seeds a claim is shown, refuted or not settled; with one seed it is not settled, whatever the difference" {
  records low bits 1.00 1.02 1.01
  records high bits 2.00 2.03 2.01
  records near bits 1.03 1.00 1.01
  record once 1 9 bits
  claims 'low < high'
  claims 'high < low'
  claims 'low < near'
  claims 'low < once'
  claims 'low < missing'
  claims unrun 'no model'
  [ "$(column verdict | paste -s -d ,)" = "shown,refuted,not settled,not settled,not run,not run" ]
  [ "$(column seeds | paste -s -d ,)" = "3,3,3,1,," ]
  [ "$(column why | sed -n 4p)" = "one seed, points for it" ]
  [ "$(column why | sed -n 6p)" = "no model" ]
  # Seeds that not all rows have do not count.
  record high 4 0 bits
  [ "$(column verdict | head -n 1)" = shown ]
}

@test "difference, interval and p are those of the paired test of the logarithms of perplexities" {
  # Logarithms of ratios .10, .12, .17: mean .13, deviation .036056, t 6.2450 of two degrees, p .0247; the interval is .0404 to .2196.
  records a perplexity 110.517091808 112.749685158 118.530485132
  records b perplexity 100.000000000 100.000000000 100.000000000
  claims 'a > b'
  [ "$(column difference)" = "ratio 1.139" ]
  near "$(column low)" 1.0413 0.001
  near "$(column high)" 1.2455 0.001
  near "$(column p)" 0.0247 0.002
  [ "$(column verdict)" = shown ]
}

@test "a figure that is exactly zero is as precise as the others of its row" {
  records a nats 0 0.010 0.020 0
  records c nats 0 1 2 0
  claims 'a < 1'
  claims 'c < 4'
  # Deviation .009574, standard error .004787, quantile of three degrees 3.18245.
  near "$(column high | head -n 1)" -0.97727 0.001
  near "$(column high | tail -n 1)" -1.7266 0.003
}

@test "a contrast of four rows, a chain, claims joined by and, numbers, and margins" {
  records a bits 1.00 1.01 1.02
  records b bits 2.00 2.02 2.02
  records c bits 3.00 3.04 3.01
  records d bits 5.00 5.05 5.01
  claims 'd - c > b - a'
  claims 'd - c < b - a'
  claims 'a < b < c < d'
  claims 'a < b < d < c'
  claims 'a < b and d > c'
  claims 'a < b and d < c'
  claims 'b = 2 within 0.2'
  claims 'b = 2.5 within 0.2'
  claims 'b = 2.2 within 0.2'
  claims 'd - c > 1.5'
  [ "$(column verdict | paste -s -d ,)" = "shown,refuted,shown,refuted,shown,refuted,shown,refuted,not settled,shown" ]
}

@test "numbers beside perplexities are ratios; perplexities do not mix with other units" {
  records a perplexity 80.0 80.5 80.2
  records b perplexity 100.0 100.1 100.3
  records c bits 1.0 1.1 1.2
  claims 'a - b = 0.8 within 0.02'
  claims 'a - b > 0.95'
  [ "$(column verdict | paste -s -d ,)" = "shown,refuted" ]
  claims 'a < c'
  refused "compares perplexities with other units"
}

@test "a row of zeros and ones beside a number is tested by the exact binomial distribution" {
  # 12 of 20. By scipy.stats: with .9 each, binom.cdf(12) is .000415635; with .5, binom.sf(11) is .2517223.
  records divided share 0 1 1 1 1 0 0 0 0 0 1 1 1 1 1 1 0 1 1 0
  claims 'divided > 0.9' '' a
  claims 'divided < 0.9' '' b
  claims '0.9 > divided' '' c
  claims 'divided > 0.5' '' d
  claims 'divided = 0.9 within 0.05' '' e
  claims 'divided = 0.6 within 0.5' '' f
  [ "$(column verdict | paste -s -d ,)" = "refuted,shown,shown,not settled,refuted,shown" ]
  for line in 1 2 3; do near "$(column p | sed -n "${line}p")" 0.00083127 0.001; done
  near "$(column p | sed -n 4p)" 0.5034446 0.001
  # With .85, binom.cdf(12) is .0059.
  near "$(column p | sed -n 5p)" 0.01184229 0.01
  # Clopper and Pearson's interval is .3605426 to .8088099.
  near "$(column low | head -n 1)" -0.5394574 0.002
  near "$(column high | head -n 1)" -0.0911901 0.002
  near "$(column low | sed -n 3p)" 0.0911901 0.002
  # Student's t is for other figures and other numbers: of 19 degrees of freedom, -.3 over .112390.
  records almost share 0.0 1.0 1.0 1.0 1.0 0.0 0.0 0.0 0.0 0.0 1.0 1.0 1.0 1.0 1.0 1.0 0.0 1.0 1.0 0.0
  claims 'almost > 0.9' '' g
  near "$(column p | tail -n 1)" 0.01525 0.01
  claims 'divided < 1.5' '' h
  [ "$(column verdict | tail -n 1)" = shown ]
  # One seed settles nothing.
  record once 1 0 share
  claims 'once > 0.999' '' i
  [ "$(column verdict | tail -n 1)" = "not settled" ]
}

@test "where nothing was trained the figures decide; beside trained ones they are constants" {
  record count - 12 words
  record more - 13 words
  records some words 9.0 9.1 9.2
  claims 'count < more'
  claims 'count > more'
  claims 'some < count'
  [ "$(column verdict | paste -s -d ,)" = "shown,refuted,shown" ]
  [ "$(column seeds | paste -s -d ,)" = "-,-,3" ]
}

@test "means with deviations, and seeds that are not shared, are compared by Welch's t; rounding bounds a deviation from below" {
  # Welch: difference .396, error sqrt((.0055^2 + .0025^2) / 3) = .00349, t 113.5, 2.79 degrees of freedom.
  record a 1-3 0.526±0.005 accuracy
  record b 1-3 0.922±0.002 accuracy
  record unknown 1-3 0.922±? accuracy
  record e 4 0.5 accuracy
  record e 5 0.6 accuracy
  records f accuracy 0.9 0.9 0.9
  claims 'a < b'
  claims 'a < unknown'
  claims 'e < f'
  # Equal figures of every seed: the deviation is taken for half of a last digit of each row, .05 and .05; t is 1.414, of one degree.
  records g accuracy 0.9 0.9
  records h accuracy 0.8 0.8
  claims 'h < g'
  [ "$(column verdict | paste -s -d ,)" = "shown,not settled,not settled,not settled" ]
  [ "$(column seeds | paste -s -d ,)" = "3,1,2,2" ]
  # -.396 - 3.32 times .00349, where 3.32 is t's quantile of 2.79 degrees.
  near "$(column low | head -n 1)" -0.408 0.002
  near "$(column p | sed -n 4p)" 0.392 0.002
}

@test "a figure with an exponent has the precision of its digits; tests take numbers below 0 and with exponents" {
  records small loss 1.0e-5 1.2e-5 1.1e-5
  records large loss 1.1e-2 1.2e-2 1.1e-2
  records below loss -0.50 -0.52 -0.51
  claims 'small < large'
  claims 'small > 5e-6'
  claims 'below < -0.4'
  [ "$(column verdict | paste -s -d ,)" = "shown,shown,shown" ]
  # Of the differences -.01099, -.011988, -.010989 the deviation is .000577, and the bound of rounding lower.
  near "$(column low | head -n 1)" -0.0127551 0.005
  # examples/record writes large figures so.
  records many parameters 1.234568e+08 1.234569e+08
  claims 'many > 1e+08'
  [ "$(column figures | tail -n 1)" = "many 1.235e+08" ]
}

@test "of a refuted claim that comparison is printed which refutes it" {
  records a bits 1.00 1.01 1.02
  records b bits 2.00 2.02 2.02
  record once 1 9 bits
  for test in 'a < once and b < a' 'b < a and a < once'; do claims "$test" '' "$((++n))"; done
  [ "$(column verdict | paste -s -d ,)" = "refuted,refuted" ]
  [ "$(column difference | paste -s -d ,)" = "1,1" ]
  [ "$(column seeds | paste -s -d ,)" = "3,3" ]
  near "$(column low | head -n 1)" 0.978 0.002
  # A part that points against a claim counts wherever it is.
  claims 'once < a and a < once' '' third
  [ "$(column why | tail -n 1)" = "one seed, points against it" ]
}

@test "Holm's correction is over the claims of a paper that have seeds" {
  # t of two degrees of freedom with p .01, .02 and .03: mean over error 9.925, 6.965, 5.643; deviations of 1, errors of .57735.
  records zero bits 0.00000 0.00000 0.00000
  records a bits 4.73014 5.73014 6.73014
  records b bits 3.02105 4.02105 5.02105
  records c bits 2.25789 3.25789 4.25789
  claims 'a > zero'
  claims 'c > zero'
  claims 'b > zero'
  claims 'a > missing'
  claims 'b > zero' '' other
  [ "$(column 'p of Holm' | paste -s -d ,)" = "0.03,0.04,0.04,,0.02" ]
  [ "$(column verdict | paste -s -d ,)" = "shown,shown,shown,not run,shown" ]
  # Any of two comparisons could refute a claim: the p of the one that does counts twice.
  claims 'zero > c and a > zero' '' third
  [ "$(column 'p of Holm' | tail -n 1)" = 0.06 ]
  sed -i '$d' tree/examples/claims.tsv
  # A claim with several seeds in one part and one seed in another counts, whatever its p.
  record once 1 0.0 bits
  claims 'a > zero and a > once' '' fourth
  claims 'a > zero' '' fourth
  [ "$(column 'p of Holm' | tail -n 2 | paste -s -d ,)" = "1,0.02" ]
  sed -i '$d' tree/examples/claims.tsv
  sed -i '$d' tree/examples/claims.tsv
  # With three more of the paper none of it is below .05.
  claims 'zero < c'
  claims 'c > zero'
  claims 'c > zero'
  [ "$(column 'p of Holm' | paste -s -d ,)" = "0.06,0.12,0.1,,0.02,0.12,0.12,0.12" ]
  [ "$(column verdict | paste -s -d ,)" = "not settled,not settled,not settled,not run,shown,not settled,not settled,not settled" ]
}

@test "the last record of a row, setting, seed and unit counts; of several settings the first with the most seeds of every row" {
  record a 1 5 bits
  record a 1 3 bits
  record a 1 7 bits other
  record b 1 4 bits other
  printf 'paper\tplace\tclaim\t\tmade/s made/other\ta < b\t\n' >>tree/examples/claims.tsv
  printf 'paper\tplace\tclaim\t\tmade/s\ta < made/other:a\t\n' >>tree/examples/claims.tsv
  [ "$(column figures | paste -s -d ';')" = "a 7, b 4;a 3, made/other:a 7" ]
  [ "$(column setting | head -n 1)" = made/other ]
  [ "$(column why | head -n 1)" = "one seed, points against it" ]
  record b 1 4 bits
  [ "$(column setting | head -n 1)" = made/s ]
  record a 2 7 bits other
  [ "$(column setting | head -n 1)" = made/s ]
  record b 2 4 bits other
  [ "$(column setting | head -n 1)" = made/other ]
  record a 1 3 nats
  refused '"a" has several units; write a@UNIT'
}

@test "a record is old where code that it exercises was changed since; without git nobody knows" {
  git -C tree init -q
  commit() { git -C tree -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m "$1" && git -C tree rev-parse --short HEAD; }
  git -C tree add tools
  first=$(commit first)
  second=$(commit second)
  printf 'a\ts\t1\t5\tbits\t10\tmake\t%s\t2026-01-01\n' "$first" >>tree/examples/made/records.tsv
  printf 'b\ts\t1\t6\tbits\t10\tmake\t%s\t2026-01-01\n' "$second" >>tree/examples/made/records.tsv
  claims 'a < b'
  [ "$(column records)" = current ]
  echo '# a change' >>tree/tools/student_t.awk
  git -C tree add tools
  third=$(commit third)
  [ "$(column records)" = "old: 2 of 2" ]
  printf 'b\ts\t1\t6\tbits\t10\tmake\t%s\t2026-01-01\n' "$third" >>tree/examples/made/records.tsv
  [ "$(column records)" = "old: 1 of 2" ]
  rm -rf tree/.git
  [ "$(column records)" = unknown ]
}

@test "what is no record and no claim is refused with its line" {
  claims 'a < b'
  record a 1 x bits
  refused 'records.tsv:2: figure "x" is no number'
  sed -i 2d tree/examples/made/records.tsv
  record a one 1 bits
  refused 'records.tsv:2: seed "one"'
  sed -i 2d tree/examples/made/records.tsv
  record a 1-3 1 bits
  refused 'records.tsv:2: a range of seeds has a mean'
  sed -i 2d tree/examples/made/records.tsv
  record 'a row' 1 1 bits
  refused 'records.tsv:2: row and setting'
  sed -i 2d tree/examples/made/records.tsv
  echo lone >>tree/examples/made/records.tsv
  refused 'records.tsv:2: 1 columns, not 9'
  sed -i 2d tree/examples/made/records.tsv
  claims beyond
  refused 'claims.tsv:3: "beyond" needs its reason'
  sed -i 3d tree/examples/claims.tsv
  claims a
  refused 'claims.tsv:3: test "a" has no comparison'
  sed -i 3d tree/examples/claims.tsv
  claims 'a = b'
  refused 'claims.tsv:3: "=" needs "within MARGIN"'
  sed -i 3d tree/examples/claims.tsv
  # A test that is no comparison has no verdict.
  records a bits 1 2 3
  records b bits 2 3 4
  records c nats 2 3 4
  records p perplexity 2 3 4
  for test in 'a <' '< b' 'a b < b' 'a + < b' 'a - - b < b' 'a < b < ' 'a < b or b > a'; do
    claims "$test"
    refused "claims.tsv:3: test \"$test\": a sum takes terms with one + or - between two"
    sed -i 3d tree/examples/claims.tsv
  done
  while IFS='|' read -r test words; do
    claims "$test"
    refused "claims.tsv:3: $words"
    sed -i 3d tree/examples/claims.tsv
  done <<'END'
a < b within 0.1|"within" is of "="
a = b within 0|"within 0": takes a number above 0
a = b within -1|"within -1": takes a number above 0
a < c|"a < c" compares bits with other units
p > 0|"p > 0": a number beside perplexities is above 0
a > 1.2.3|"1.2.3" is no number
END
  while IFS='|' read -r row seed figure unit words; do
    record "$row" "$seed" "$figure" "$unit"
    refused "records.tsv:14: $words"
    sed -i 14d tree/examples/made/records.tsv
  done <<'END'
0.9|1|1|bits|row "0.9" is a number or a word of tests
within|1|1|bits|row "within" is a number
d|01|1|bits|seed "01"
d|3-1|1±0.1|bits|seeds "3-1": the second is not above the first
d|1-3|1±0.0.1|bits|figure "1±0.0.1" is no number
d|1|1e400|bits|figure "1e400" is no number
d|1|1,234|bits|figure "1,234" is no number
d|1|1||unit ""
a|-|1|bits|"a" has records with a seed and without one
END
  for file in made/records.tsv claims.tsv exercises.tsv; do
    cp "tree/examples/$file" kept
    : >"tree/examples/$file"
    refused "$file: is empty"
    cp kept "tree/examples/$file"
  done
  run -74 bash -c 'tree/tools/verdicts >/dev/full'
  run -64 tree/tools/verdicts --nothing
  run -64 tree/tools/verdicts --check --write
}

@test "--write fills the tables between markers, --check finds a figure that was written by hand" {
  records a bits 1.00 1.01 1.02
  records b bits 2.00 2.02 2.02
  claims 'a < b'
  claims beyond 'too large'
  claims 'a > b' '' own
  claims beyond 'too large' lone
  printf 'text\n<!-- verdicts: counts -->\n<!-- end of verdicts -->\nmore\n' >tree/README.md
  printf '<!-- verdicts: %s -->\nold\n<!-- end of verdicts -->\n' paper lone own >tree/examples/README.md
  run -1 tree/tools/verdicts --check
  [[ $output == *"examples/README.md: the verdicts are not those of the records; run tools/verdicts --write"* ]]
  tree/tools/verdicts --write
  tree/tools/verdicts --check
  grep -qx '| paper | 2 | 1 | 0 | 0 | 0 | 1 | 0 |' tree/README.md
  # A comparison that no paper states is in no count.
  grep -qx '| all | 3 | 1 | 0 | 0 | 0 | 2 | 0 |' tree/README.md
  [ "$(grep -c '^| own ' tree/README.md)" -eq 0 ]
  [ "$(head -n 1 tree/README.md)$(tail -n 1 tree/README.md)" = textmore ]
  grep -q '| a 1.01, b 2.013 | .* | 3 | \*\*shown\*\* |' tree/examples/README.md
  # A paper has a table where it has rows, and a count of its other statements.
  [ "$(grep -c 'beyond this scale, 0 not read' tree/examples/README.md)" -eq 2 ]
  [ "$(grep -c '^| place ' tree/examples/README.md)" -eq 2 ]
  sed -i 's/\*\*shown\*\*/**refuted**/' tree/examples/README.md
  run -1 tree/tools/verdicts --check
  # A last line without its end remains.
  printf last >>tree/README.md
  tree/tools/verdicts --write
  [ "$(tail -n 1 tree/README.md)" = last ]
  printf '<!-- verdicts: nobody -->\n<!-- end of verdicts -->\n' >tree/README.md
  run -65 tree/tools/verdicts --write
  [[ $output == *'"nobody": no claim is of this paper' ]]
  printf '<!-- verdicts: paper -->\n<!-- verdicts: paper -->\n<!-- end of verdicts -->\n' >tree/README.md
  run -65 tree/tools/verdicts --check
  [[ $output == *"README.md: verdicts begin before those above them end"* ]]
  echo '<!-- verdicts: paper -->' >tree/README.md
  run -65 tree/tools/verdicts --check
  [[ $output == *"README.md: verdicts without their end"* ]]
}

@test "the tables of README.md and examples/README.md are those of the records" {
  "$root/tools/verdicts" --check
  # Each paper that has claims has its table.
  for paper in $("$root/tools/verdicts" | tail -n +2 | cut -f 1 | sort -u); do
    grep -qx "<!-- verdicts: $paper -->" "$root/examples/README.md"
  done
}

@test "the README's table of the demo is that of the records" {
  # figures_of_demo PREFIX: of the rows of a name that begins so, in their order.
  figures_of_demo() { awk -F '\t' -v begin="$1" '$2 == "demo" && $5 == unit && index($1, begin) == 1 { print $4 }' unit="$2" "$root/examples/novels/records.tsv"; }
  paste -d '|' <(figures_of_demo '' perplexity) <(figures_of_demo bits- bits) <(figures_of_demo speed- tokens/s) >records
  sed -n '/^| model and memories | perplexity /,/^$/p' "$root/README.md" | tail -n +3 |
    awk -F ' *[|] *' 'NF > 1 { gsub(/,/, "", $5); print $3 "|" $4 "|" $5 }' >shown
  [ "$(wc -l <shown)" -eq 7 ]
  diff records shown
}

@test "each record belongs to code that is there" {
  grep -v '^#' "$root/examples/exercises.tsv" >exercises
  for path in $(cut -f 2 exercises); do [ -e "$root/$path" ] || { echo "$path is not there" && return 1; }; done
  for file in "$root"/examples/*/records.tsv; do
    folder=${file%/*}
    grep -q "^${folder##*/}/$(printf '\t')" exercises || { echo "$file has no line in exercises.tsv" && return 1; }
  done
}

# figures_of ROW-OF-FIGURES.TSV...: what gnuplot reads of them.
figures_of() {
  cp "$root/examples/figures" tree/examples
  { printf 'figure\tx\ty\tseries\tsetting\trow\tunit\tpublished\n' && printf '%s\n' "$@"; } >tree/examples/figures.tsv
  mkdir -p fake
  printf '#!/bin/bash\ncat >>"$READ"\n' >fake/gnuplot
  chmod +x fake/gnuplot
  : >read
  READ=$PWD/read PATH=$PWD/fake:$PATH tree/examples/figures "$PWD/drawn"
}

@test "figures: a series has the means of its seeds by number or by name, and published points a panel of their own" {
  record len-2 1 1 bits
  record len-10 1 4 bits
  record len-10 2 6 bits
  record len-10-more 1 9 bits
  record all 1 3 bits
  # The last record counts.
  record all 1 2 bits
  record part 1-3 4±0.5 bits
  figures_of $'one\tx\ty\there it is\tmade/s\tlen-*\tbits\t' $'one\tx\ty\tpaper\t\t\t\t5:7 6:8.5' \
    $'two\tx\ty\tnames\tmade/s\t{none,all,part}\tbits\t' $'none\tx\ty\tnot run\tmade/s\tother-*\tbits\t'
  grep -A 3 '^\$series1 << EOD' read | head -n 4 | paste -s -d ';' >series
  grep -qx '$series1 << EOD;2 1 1 1;10 5 4 6;EOD' series
  grep -A 2 '^\$series2 << EOD' read | paste -s -d ';' | grep -qx '$series2 << EOD;5 7 7 7;6 8.5 8.5 8.5'
  grep -A 2 '^\$series1 << EOD' read | tail -n 2 | paste -s -d ';' | grep -qx '0 2 2 2;1 4 3.5 4.5'
  grep -qF "xtics rotate by -30 ('all' 0, 'part' 1)" read
  [ "$(grep -c "^set title 'published'" read)" -eq 1 ]
  [ "$(grep '^set output' read | sed "s|.*/||" | paste -s -d ' ')" = "one.svg' two.svg'" ]
}

@test "figures: a figures.tsv with a line that says nothing is refused with the line" {
  record len-2 1 1 bits
  while IFS='|' read -r words line; do
    run -65 --separate-stderr figures_of "$line"
    [ "$stderr" = "figures: figures.tsv:2: $words" ]
  done <<'END'
7 columns, not 8|one	x	y	here	made/s	len-*	bits
"a/b" cannot be the name of a file|a/b	x	y	here	made/s	len-*	bits	
takes setting, row with * or {}, and unit, or published points|one	x	y	here	made/s	len	bits	
takes setting, row with * or {}, and unit, or published points|one	x	y	here	made/s	len-*	bits	1:2
published points are X:Y with spaces between|one	x	y	paper				1:2 3;4
END
  : >tree/examples/figures.tsv
  run -65 tree/examples/figures "$PWD/drawn"
}

@test "figures: every series of figures.tsv but those that were not run has records; gnuplot draws each figure" {
  mkdir fake
  printf '#!/bin/bash\ncat >>"$READ"\n' >fake/gnuplot
  chmod +x fake/gnuplot
  READ=$PWD/read PATH=$PWD/fake:$PATH make -s -C "$root/examples" OUT="$PWD/drawn" figures
  for figure in $(grep -v '^#' "$root/examples/figures.tsv" | tail -n +2 | cut -f 1 | sort -u); do
    grep -q "^set output '.*/$figure.svg'" read || { echo "$figure has no records" && return 1; }
  done
  command -v gnuplot >/dev/null || skip "gnuplot is not there"
  make -s -C "$root/examples" OUT="$PWD/drawn" figures 2>said
  [ ! -s said ]
  for file in drawn/*.svg; do grep -q '</svg>' "$file"; done
}
