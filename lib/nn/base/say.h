#pragma once
// What a user should know of what a library function chose.

#include <string>

namespace nn {

/// Hands a line to the `say` that start() was given, if there is one.
void say(const std::string& text);

}  // namespace nn
