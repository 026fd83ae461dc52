#pragma once
// Captures the error that a body throws.

#include <functional>
#include <string>

#include "core/error.h"

/// Code 0 and no text if nothing was thrown.
struct Thrown {
  int code = 0;
  std::string text;
  bool names(std::string_view part) const { return text.find(part) != text.npos; }
};

inline Thrown thrown(const std::function<void()>& body) {
  try {
    body();
  } catch (const core::Error& error) { return {static_cast<int>(error.code()), error.what()}; }
  return {};
}
