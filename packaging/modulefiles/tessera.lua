-- Lmod: module load tessera, where this file is .../modulefiles/tessera/VERSION.lua and `root` names the unpacked tarball of
-- make dist. `tessera train` and the like; TESSERA_NAMES=1 puts the bare names (train, sample, ...) into PATH too.
local root = "/opt/tessera"

whatis("Tessera: programs for language models that remember")
prepend_path("PATH", pathJoin(root, "bin"))
if os.getenv("TESSERA_NAMES") then prepend_path("PATH", pathJoin(root, "libexec/tessera")) end
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("XDG_DATA_DIRS", pathJoin(root, "share"))
