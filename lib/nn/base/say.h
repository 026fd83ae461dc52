#pragma once
// Notes for the user about choices that a library function made.

#include <string>

namespace nn {

/// Passes a line to the `say` of start(), if set.
void say(const std::string& text);

}  // namespace nn
