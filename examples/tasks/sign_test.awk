# Lines "A B", each true or false: whether a question was answered rightly by two models. Prints with tabs between: the share
# that B has right, its Wilson interval of 95 %, how many only B has right, how many only A, and the p of the sign test of
# these (two-sided, exact). Needs ../wilson.awk.
{
  right += $2 == "true"
  more += $1 != "true" && $2 == "true"
  fewer += $1 == "true" && $2 != "true"
}

function sign_test(a, b,    n, least, i, term, sum) {
  n = a + b
  if (n == 0) return 1
  least = a < b ? a : b
  term = exp(-n * log(2))
  for (i = 0; i <= least; ++i) {
    sum += term
    term *= (n - i) / (i + 1)
  }
  return 2 * sum < 1 ? 2 * sum : 1
}

END {
  printf "%s\t%d\t%d\t%.3g\n", wilson(right, NR), more, fewer, sign_test(more, fewer)
}
