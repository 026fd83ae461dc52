#pragma once
// How other programs lay windows over a text and count what they score: --protocol.

#include <cstdint>
#include <string>
#include <vector>

namespace infer {

/// How windows of W tokens that advance by S lie on a stream; as it is made: the first scores all
/// its targets, each later one its last S, what is left stands in a shorter one.
struct WindowLayout {
  /// A window's targets are tokens that it is fed itself: W tokens have W - 1.
  bool closed = false;
  bool grows = false;       ///< the first window is S long, later ones grow to W
  bool last_full = false;   ///< the last window begins earlier, so that it is W long too
  bool whole_only = false;  ///< what fills no window is not scored
  /// The first W / 2 inputs of a window are context, whatever was scored.
  bool second_half = false;
  /// The mean of a window counts for one token less than it scores where the window before was fed
  /// its first token too.
  bool one_less = false;
  /// The end-of-document token that closes a stream is not of it.
  bool without_mark = false;
};

/// What a text begins with where --begin leaves it open: what the tokenizer's template says, else
/// ... (template_only: nothing).
enum class Beginning { template_only, template_or_mark, mark };

/// What a protocol sets; an option that was given wins.
struct Protocol {
  std::string name;
  WindowLayout layout;
  std::int64_t window = 0;  ///< 0: the model's positions; never more than these
  std::int64_t stride = 0;  ///< 0: the window; never more
  Beginning beginning = Beginning::template_only;
  bool by_document = false;     ///< each document is a stream of its own
  bool begins_windows = false;  ///< what a text begins with stands in each later window too
};

/// hf, lm-eval, llama.cpp, fairseq.
const std::vector<Protocol>& protocols();
/// none, and theirs.
std::vector<std::string> protocol_names();
/// Null for "none". Throws Error{usage} for one that there is not.
const Protocol* find_protocol(const std::string& name);

}  // namespace infer
