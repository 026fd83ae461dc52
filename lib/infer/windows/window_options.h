#pragma once
// Options of scoring: windows over the stream.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/options.h"
#include "infer/windows/protocol.h"

namespace infer {

/// Sliding windows over a stream. The first window scores all its targets; each later one starts
/// `stride` tokens further and scores its last `stride` tokens. A WindowPlan is the resolved form
/// for a model and a text.
struct WindowOptions {
  std::int64_t window = 0;        ///< tokens in a window; 0: the training segment
  std::int64_t stride = 0;        ///< 0 (auto): window
  std::string restart = "none";   ///< "document": each document is a separate stream
  std::string carry = "auto";     ///< "on": carries State from block to block, without re-encoding
  std::string begin = "auto";     ///< BOS token of a stream: auto, none, or a token's text
  std::string bos_at = "text";    ///< "window": BOS token before every later window too
  std::string protocol = "none";  ///< sets the other options if they are not given
  std::int64_t batch_tokens = 4096;  ///< maximum tokens of the windows in one forward pass
  void fields(core::FieldList& f) { fields(f, true); }
  /// Lists the options except protocol, which only evaluations have. `documents` false: texts have
  /// no documents, so restart is omitted.
  void fields(core::FieldList& f, bool documents);
  /// Lists protocol; `names`: its accepted values.
  void protocol_field(core::FieldList& f, std::vector<std::string> names = protocol_names());
  /// Applies the protocol to options that are not among the `given` and have no auto.
  void settle(const std::set<std::string>& given);
};

/// Throws Error{usage} if an option of the windows is among the `given`, because a pair is read
/// whole.
void refuse_windows_of_pairs(const std::set<std::string>& given);

}  // namespace infer
