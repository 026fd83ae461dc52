#pragma once
// Evaluation protocols of other programs: layout of windows, and counting of tokens (--protocol).

#include <cstdint>
#include <string>
#include <vector>

namespace infer {

/// Layout of windows with W tokens and stride S on a stream. Default: the first window scores all
/// its targets, each later one its last S, and the rest forms a shorter window.
struct WindowLayout {
  /// Targets are tokens of the window itself: W tokens have W - 1 targets.
  bool closed = false;
  bool grows = false;       ///< the first window has length S, later ones grow to W
  bool last_full = false;   ///< the last window begins earlier, so that its length is W
  bool whole_only = false;  ///< tokens that fill no whole window are not scored
  /// The first W / 2 inputs of a window are always context.
  bool second_half = false;
  /// Discounts a window by one token if the previous window contained its first token: the window's
  /// mean counts for one token less than it scores.
  bool one_less = false;
  /// The end-of-document token at the end of a stream is removed.
  bool without_mark = false;
};

/// Default BOS token of a text if --bos is unset. template_only: the token of the tokenizer's
/// template, or none. template_or_mark: that token, else the end-of-document token. mark: the
/// end-of-document token.
enum class Beginning { template_only, template_or_mark, mark };

/// Settings of a protocol; explicit options take precedence.
struct Protocol {
  std::string name;
  WindowLayout layout = {};
  std::int64_t window = 0;  ///< 0: the model's positions; upper limit otherwise
  std::int64_t stride = 0;  ///< 0: the window; upper limit otherwise
  Beginning beginning = Beginning::template_only;
  bool by_document = false;     ///< each document is a separate stream
  bool begins_windows = false;  ///< later windows begin with the BOS token too
};

/// Returns the protocols hf, lm-eval, llama.cpp and fairseq.
const std::vector<Protocol>& protocols();
/// Returns "none" and the names of the protocols.
std::vector<std::string> protocol_names();
/// Returns the protocol; null for "none". Throws Error{usage} for an unknown name.
const Protocol* find_protocol(const std::string& name);

}  // namespace infer
