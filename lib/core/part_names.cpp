#include "core/part_names.h"

#include "core/error.h"

namespace core {

void PartNames::add(const Part& part, const std::string& name) {
  if (names_.empty()) count_ = part.count;
  const auto [twice, added] = names_.emplace(part.index, name);
  if (!added) fail(Code::usage, "{}: is part {}, like {}", name, part.index + 1, twice->second);
}

void PartNames::expect_all(std::string_view flag) const {
  for (std::int64_t index = 0; index < count_; ++index)
    if (names_.count(index) == 0)
      fail(Code::usage, "{}part {} of {} is missing",
           flag.empty() ? "" : fmt::format("--{}: ", flag), index + 1, count_);
}

}  // namespace core
