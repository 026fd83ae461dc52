#!/bin/sh
# tessera, as a tarball has it. Where the system's C library is too old for the programs they run by lib/tessera/glibc.
top=$(dirname "$(dirname "$(readlink -f "$0")")")
tessera=$top/libexec/tessera/tessera
"$tessera" --version >/dev/null 2>&1 && exec "$tessera" "$@"
own=$top/lib/tessera/glibc
exec "$own/ld-linux-x86-64.so.2" --library-path "$own:$top/lib/tessera" "$tessera" "$@"
