#include "nn/memory.h"

#include "core/error.h"

namespace nn {

bool MemoryRule::sees(std::int64_t query_run, std::int64_t query_segment,
                      std::int64_t query_position, std::int64_t entry_run,
                      std::int64_t entry_segment, std::int64_t entry_position) const {
  if (query_run < 0 || entry_run < 0) return false;
  if (query_run != entry_run) return ext;
  if (entry_position >= query_position) return false;
  const bool own_segment = query_segment == entry_segment;
  if (own_segment && drop_own_segment) return false;
  return (local && own_segment) ||
         (far && (reach == 0 || query_position - entry_position <= reach));
}

MemoryRule MemoryRule::parse(const std::string& names) {
  MemoryRule rule;
  if (names == "none") return rule;
  std::size_t begin = 0;
  while (begin <= names.size()) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    if (name == "local") {
      rule.local = true;
    } else if (name == "long") {
      rule.far = true;
    } else if (name == "ext") {
      rule.ext = true;
    } else {
      core::fail(core::Code::usage,
                 "memory '{}': takes none, or a sum of local, long, ext (write local,long)", names);
    }
    begin = end + 1;
  }
  return rule;
}

std::string MemoryRule::name() const {
  std::string text;
  const auto add = [&](bool on, const char* name) {
    if (!on) return;
    if (!text.empty()) text += ',';
    text += name;
  };
  add(local, "local");
  add(far, "long");
  add(ext, "ext");
  return text.empty() ? "none" : text;
}

}  // namespace nn
