# student_t.awk: Student's t distribution, for `awk -f student_t.awk -f PROGRAM`.
#
#   student_upper(t, df)     P(T > t) of df degrees of freedom, which need not be a whole number
#   student_quantile(p, df)  the t with P(T > t) = p, for p below 1/2
#
# The incomplete beta function is the continued fraction of Abramowitz & Stegun 26.5.8, by Lentz's method; the logarithm of the
# gamma function is Stirling's series. Relative errors are below 1e-9.

function log_gamma(x,    shift, y) {
  # Stirling's series from 10 on; below, by the recurrence.
  shift = 0
  while (x < 10) { shift += log(x); x++ }
  y = 1 / (x * x)
  return (x - 0.5) * log(x) - x + 0.9189385332046727418 - shift + \
    (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x
}

function beta_fraction(a, b, x,    c, d, h, m, term, step, tiny) {
  tiny = 1e-300
  c = 1
  d = 1 - (a + b) * x / (a + 1)
  if (d < tiny && d > -tiny) d = tiny
  d = 1 / d
  h = d
  for (m = 1; m <= 1000; m++) {
    term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
    d = 1 + term * d
    if (d < tiny && d > -tiny) d = tiny
    c = 1 + term / c
    if (c < tiny && c > -tiny) c = tiny
    d = 1 / d
    h *= d * c
    term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
    d = 1 + term * d
    if (d < tiny && d > -tiny) d = tiny
    c = 1 + term / c
    if (c < tiny && c > -tiny) c = tiny
    d = 1 / d
    step = d * c
    h *= step
    if (step - 1 < 1e-15 && 1 - step < 1e-15) break
  }
  return h
}

# I_x(a, b), where y is 1 - x.
function incomplete_beta(a, b, x, y,    front) {
  if (x <= 0) return 0
  if (y <= 0) return 1
  front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(y))
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a
  return 1 - front * beta_fraction(b, a, y) / b
}

function student_upper(t, df,    half) {
  half = incomplete_beta(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t)) / 2
  return t >= 0 ? half : 1 - half
}

function student_quantile(p, df,    low, high, middle, i) {
  low = 0
  high = 1
  while (student_upper(high, df) > p && high < 1e12) high *= 2
  for (i = 0; i < 200; i++) {
    middle = (low + high) / 2
    if (student_upper(middle, df) > p) low = middle
    else high = middle
  }
  return (low + high) / 2
}
