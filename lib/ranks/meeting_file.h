#pragma once
// Rendezvous file for ranks without a network address from the launcher.

#include <string>
#include <string_view>

namespace ranks {

inline constexpr std::string_view kMeetingFile = ".ranks.";

/// Returns the name of the file in the run's folder. The file is removed when all ranks have
/// joined; files of killed runs may be deleted.
inline std::string meeting_file(const std::string& launch) {
  return std::string(kMeetingFile) + launch;
}

}  // namespace ranks
