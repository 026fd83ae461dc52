#include "text/documents/line_pieces.h"

#include <utility>

#include "core/error.h"

namespace text {
namespace {

const core::OrderedJson& member(const core::OrderedJson& of, const char* name,
                                const std::string& origin) {
  const auto found = of.is_object() ? of.find(name) : of.end();
  if (!of.is_object() || found == of.end())
    core::fail(core::Code::bad_data, "{}: has no \"{}\"", origin, name);
  return *found;
}

std::string text_member(const core::OrderedJson& of, const char* name, const std::string& origin) {
  const auto& value = member(of, name, origin);
  if (!value.is_string())
    core::fail(core::Code::bad_data, "{}: \"{}\" is not a string", origin, name);
  return value.get<std::string>();
}

}  // namespace

LinePieces completion_pieces() {
  return [](const core::OrderedJson& line, const std::string& origin) {
    return std::vector<Piece>{{text_member(line, "prompt", origin), false},
                              {text_member(line, "completion", origin), true}};
  };
}

LinePieces segment_pieces() {
  return [](const core::OrderedJson& line, const std::string& origin) {
    const auto& segments = member(line, "segments", origin);
    if (!segments.is_array())
      core::fail(core::Code::bad_data, "{}: \"segments\" is not a list", origin);
    std::vector<Piece> pieces;
    for (const auto& segment : segments) {
      const auto& label = member(segment, "label", origin + ": segments");
      if (!label.is_boolean())
        core::fail(core::Code::bad_data, "{}: segments: \"label\" is neither true nor false",
                   origin);
      pieces.push_back({text_member(segment, "text", origin + ": segments"), label.get<bool>()});
    }
    return pieces;
  };
}

}  // namespace text
