#pragma once
// Handles memory-mapped files that another process truncates.

#include <string>

namespace cli {

/// Installs a handler for reads of mapped pages that their file no longer has. The handler removes
/// temporary files, prints one line that names the file, and ends the program with Code::io.
/// `program` is the program's name in that line.
void catch_lost_pages(const std::string& program);

}  // namespace cli
