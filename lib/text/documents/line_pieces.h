#pragma once
// Documents that are learned in part: what of a line of JSON is context, and what is to be learned.

#include <functional>
#include <string>
#include <vector>

#include "core/json.h"

namespace text {

/// A stretch of a document, which is encoded by itself: no token crosses its ends.
struct Piece {
  std::string text;
  bool learned;
};

/// The pieces of a line's object, one after the other. `origin`, file and line, begins messages.
/// Throws Error{bad_data}.
using LinePieces =
    std::function<std::vector<Piece>(const core::OrderedJson& line, const std::string& origin)>;

/// Of {"prompt", "completion"}, the completion is learned.
LinePieces completion_pieces();
/// Of {"segments": [{"text", "label"}, ...]}, those whose label is true.
LinePieces segment_pieces();

}  // namespace text
