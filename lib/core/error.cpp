#include "core/error.h"

#include <system_error>

namespace core {

std::string error_text(int error_number) { return std::generic_category().message(error_number); }

}  // namespace core
