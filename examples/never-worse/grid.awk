# grid.awk: a line for each model, pass and memory of lines MODEL PASS MEMORY DIFFERENCE TEXT: the mean over the texts, half of its 95 %
# interval, and the worst text. For `awk -f ../../tools/student_t.awk -f grid.awk`.
{
  key = $1 OFS $2 OFS $3
  if (!(key in n)) order[++keys] = key
  if (!n[key]++ || $4 > worst[key]) { worst[key] = $4; text[key] = $5 }
  sum[key] += $4
  squares[key] += $4 * $4
}
END {
  print "model", "combine", "memory", "mean", "half", "worst", "text"
  for (i = 1; i <= keys; ++i) {
    key = order[i]
    mean = sum[key] / n[key]
    half = "-"
    if (n[key] > 1) {
      variance = (squares[key] - n[key] * mean * mean) / (n[key] - 1)
      half = sprintf("%.5f", student_quantile(0.025, n[key] - 1) * sqrt((variance > 0 ? variance : 0) / n[key]))
    }
    printf "%s\t%.5f\t%s\t%.5f\t%s\n", key, mean, half, worst[key], "text-" text[key] ".txt"
  }
}
