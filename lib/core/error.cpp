#include <cerrno>
#include <system_error>

#include "core/base.h"

namespace core {

std::string error_text(int error_number) { return std::generic_category().message(error_number); }

void fail_errno(Code otherwise, const std::string& what, int error) {
  switch (error) {
    case EMFILE: fail(Code::out_of_memory, "{}: too many open files; raise ulimit -n", what);
    case ENFILE:
      fail(Code::out_of_memory, "{}: too many open files on this machine; close other programs",
          what);
    case ENOMEM:
      fail(Code::out_of_memory, "{}: {}; reduce memory or close other programs", what,
          error_text(error));
    default: fail(otherwise, "{}: {}", what, error_text(error));
  }
}

}  // namespace core
