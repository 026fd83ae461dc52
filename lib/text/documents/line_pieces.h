#pragma once
// Splits a JSON line into pieces that are context and pieces that are learned.

#include <functional>
#include <string>
#include <vector>

#include "core/json.h"

namespace text {

/// A Piece is a part of a document that is encoded separately: no token crosses its ends.
struct Piece {
  std::string text;
  bool learned;
};

/// A LinePieces returns the consecutive pieces of a line's object. `origin`, file and line, begins
/// its messages. Throws Error{bad_data}.
using LinePieces =
    std::function<std::vector<Piece>(const core::OrderedJson& line, const std::string& origin)>;

/// Returns a function for {"prompt", "completion"}, in which the completion is learned.
LinePieces completion_pieces();
/// Returns a function for {"segments": [{"text", "label"}, ...]}, in which the segments with a true
/// label are learned.
LinePieces segment_pieces();

}  // namespace text
