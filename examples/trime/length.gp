set terminal svg size 640,420
set output out
set xlabel 'tokens of memory at test'
set ylabel 'perplexity'
set logscale x 2
set key autotitle columnhead
set datafile separator '\t'
# On this axis the row without memory has no place.
plot table using ($1 > 0 ? $1 : NaN):2 with linespoints, table using ($1 > 0 ? $1 : NaN):3 with linespoints
