#pragma once
// Checks all that can be checked of a shard.

#include <functional>
#include <string>
#include <vector>

#include "core/json.h"
#include "shard/header.h"

namespace shard {

/// Reads all of the shard at `path` ("-": stdin) and throws what is wrong with it; its trailer
/// otherwise. Of a regular file the fingerprint is computed anew from the elements; of a pipe,
/// where documents are known only behind their elements, the hash of its bytes vouches for them.
Trailer verify(const std::string& path);

/// What verify() found of a file, damaged or not.
struct Verdict {
  std::string path;
  Trailer trailer;    ///< where it is whole
  std::string error;  ///< what is wrong; empty: nothing

  bool ok() const { return error.empty(); }
  /// {"file", "ok"}, then "elements" and "fingerprint", or "error".
  core::OrderedJson json() const;
  std::string line() const;  ///< the same for the eye
};
/// Throws only what is not the shard's fault: Error{no_input}, Error{io}.
Verdict judge(const std::string& path);
/// Judges each file and tells `found` of it. Returns what is wrong with the first that is damaged,
/// and how many more are; nothing where all are whole.
std::string judge(const std::vector<std::string>& paths,
                  const std::function<void(const Verdict&)>& found);

}  // namespace shard
