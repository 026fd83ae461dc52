set terminal svg size 640,420
set output out
set xlabel 'layers'
set ylabel 'nats a token'
set key autotitle columnhead
set datafile separator '\t'
plot for [c=4:7] table using 1:c with linespoints
