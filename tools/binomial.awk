# binomial.awk: the exact binomial distribution, for `awk -f student_t.awk -f binomial.awk -f PROGRAM`, whose incomplete beta function it uses.
#
#   binomial_upper(k, n, p)           P(X >= k) of n trials with the probability p
#   binomial_lower(k, n, p)           P(X <= k)
#   binomial_low(k, n, tail)          the p with P(X >= k) = tail: the lower end of Clopper and Pearson's interval of 1 - 2 tail
#   binomial_high(k, n, tail)         the p with P(X <= k) = tail: its upper end
#
# A p below 0 or above 1 counts as an event that never or always happens, for k of 0 and n too.

function binomial_upper(k, n, p) {
  if (p < 0 || p > 1) return p > 1
  if (k <= 0) return 1
  return incomplete_beta(k, n - k + 1, p, 1 - p)
}

function binomial_lower(k, n, p) { return binomial_upper(n - k, n, 1 - p) }

function binomial_low(k, n, tail,    low, high, middle, i) {
  if (k <= 0) return 0
  low = 0
  high = 1
  for (i = 0; i < 60; i++) {
    middle = (low + high) / 2
    if (binomial_upper(k, n, middle) < tail) low = middle
    else high = middle
  }
  return (low + high) / 2
}

function binomial_high(k, n, tail) { return 1 - binomial_low(n - k, n, tail) }
