# Lines "A B", each true or false: whether a question was answered rightly by two models. Prints with tabs between: the share
# that B has right, its Wilson interval of 95 %, how many only B has right, how many only A, and the p of the sign test of
# these (two-sided, exact).
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
  z = 1.959964
  share = right / NR
  middle = (share + z * z / (2 * NR)) / (1 + z * z / NR)
  half = z / (1 + z * z / NR) * sqrt(share * (1 - share) / NR + z * z / (4 * NR * NR))
  printf "%.3f\t%.3f\t%.3f\t%d\t%d\t%.3g\n", share, middle - half, middle + half, more, fewer, sign_test(more, fewer)
}
