# wilson(k, n): the share of k in n and Wilson's interval of 95 %, with tabs between. For awk -f wilson.awk -f PROGRAM.
function wilson(k, n,   z, share, middle, half) {
  z = 1.959964
  share = k / n
  middle = (share + z * z / (2 * n)) / (1 + z * z / n)
  half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
  return sprintf("%.3f\t%.3f\t%.3f", share, middle - half, middle + half)
}
