#pragma once
// The file by which ranks meet where no launcher names an address.

#include <string>
#include <string_view>

namespace ranks {

inline constexpr std::string_view kMeetingFile = ".ranks.";

/// In the folder of the run; gone once all have met. What a killed run left is nobody's.
inline std::string meeting_file(const std::string& launch) {
  return std::string(kMeetingFile) + launch;
}

}  // namespace ranks
