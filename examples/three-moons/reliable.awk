# How many seeds have heads that divide the moons, after each number of updates: of record.awk's tables of maps, the first of all
# seeds, the second of those that failed. stdout: seeds, how many of them, the share with Wilson's interval of 95 %, who failed. Needs ../wilson.awk.

BEGIN {
  FS = OFS = "\t"
  print "updates", "seeds", "divided", "share", "low", "high", "failed"
}

FNR == 1 { ++table }
$3 == "yes" || $3 == "no" {
  ++tried[table]
  if ($3 == "yes") ++divided[table]
  else failed[table] = failed[table] " " $1
}

END {
  print 500, tried[1], divided[1] + 0, wilson(divided[1], tried[1]), failed[1] == "" ? "-" : substr(failed[1], 2)
  if (table > 1) {
    print "1000, where 500 failed", tried[2], divided[2] + 0, wilson(divided[2], tried[2]), failed[2] == "" ? "-" : substr(failed[2], 2)
    k = divided[1] + divided[2]
    print "500 or 1000", tried[1], k, wilson(k, tried[1]), failed[2] == "" ? "-" : substr(failed[2], 2)
  }
}
