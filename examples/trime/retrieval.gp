set terminal svg size 640,420
set output out
set xlabel 'nearest entries'
set ylabel 'tokens that are a label among them'
set logscale x 2
set yrange [0:1]
set key autotitle columnhead left
set datafile separator '\t'
plot table using 1:2 with linespoints, table using 1:3 with linespoints
