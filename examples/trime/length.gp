set terminal svg size 640,420
set output out
set xlabel 'tokens of memory at test'
set ylabel 'perplexity'
set logscale x 2
set key autotitle columnhead
set datafile separator '\t'
plot table using 1:2 with linespoints, table using 1:3 with linespoints
