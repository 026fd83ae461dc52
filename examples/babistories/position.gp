set terminal svg size 640,420
set output out
set xlabel 'position in the document'
set ylabel 'nats a token'
set key autotitle columnhead
set datafile separator '\t'
plot for [c=2:9] table using 1:c with linespoints
