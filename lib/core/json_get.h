#pragma once
// Defines core::get (core/json.h includes this file).

#include "core/error.h"

namespace core {

template <class T>
T get(const Json& object, const char* key, const std::string& origin) {
  if (!object.is_object() || !object.contains(key))
    fail(Code::bad_data, "{}: has no \"{}\"", origin, key);
  const Json& value = object.at(key);
  bool fits = true;
  if constexpr (std::is_same_v<T, bool>) {
    fits = value.is_boolean();
  } else if constexpr (std::is_integral_v<T>) {
    fits = value.is_number_integer() && (std::is_signed_v<T> || value.is_number_unsigned());
  } else if constexpr (std::is_floating_point_v<T>) {
    fits = value.is_number();
  }
  try {
    if (fits) return value.get<T>();
  } catch (const Json::exception&) {
    fits = false;
  }
  fail(Code::bad_data, "{}: \"{}\" has the wrong type", origin, key);
}

}  // namespace core
