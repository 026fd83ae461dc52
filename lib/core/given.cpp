#include "core/given.h"

#include "core/error.h"

namespace core {

void leave_out(const char* mine, const char* why, const std::vector<std::string>& flags,
               const std::set<std::string>& given) {
  for (const auto& flag : flags)
    if (given.count(flag) > 0) fail(Code::usage, "--{}: {}; leave --{} out", mine, why, flag);
}

void leave_out(const char* mine, const char* why, const FieldList& fields,
               const std::set<std::string>& given) {
  std::vector<std::string> flags;
  for (const auto& field : fields.all())
    if (!field.positional) flags.push_back(field.name);
  leave_out(mine, why, flags, given);
}

}  // namespace core
