#pragma once
// Files that are read as memory, and cut short meanwhile by another process.

#include <string>

namespace cli {

/// From now on the program ends with Code::io and one line that names the file when it reads a page
/// that its file has no longer; its temporary files are removed. `program`: its name in that line.
void catch_lost_pages(const std::string& program);

}  // namespace cli
