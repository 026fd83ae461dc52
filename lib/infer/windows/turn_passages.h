#pragma once
// Retrieved passages in the last turn of a conversation (--chat with --retrieve).

#include "infer/windows/retrieve_options.h"
#include "passages/passage_index.h"
#include "text/chat/chat_template.h"

namespace infer {

/// Options of passages for a turn. The passages that share most with the words of the turn are
/// retrieved once, by BM25: at most `k`, and only those whose score is at least `least` times the
/// best one's.
struct TurnOptions {
  std::int64_t k = 3;
  double least = 0.5;
  std::string form;  ///< file of a template with `passages` and `question`; empty: the default
  void fields(core::FieldList& f);

  /// Returns what a chat does with the index of `retrieve`, which is then no longer that of
  /// windows; nothing without an index or without `chat`. Throws Error{usage} for options among
  /// `given` that do not apply, and as TurnPassages.
  text::Chat::Revision settle(
      RetrieveOptions& retrieve, bool chat, const std::set<std::string>& given) const;
};

/// Puts passages into the last user's turn. Const calls are thread safe.
class TurnPassages {
 public:
  /// Opens an index of passages. `tokens` limits each passage; 0: 256. Throws the errors of
  /// passages::PassageIndex, of core::read_text() and of text::ChatTemplate.
  TurnPassages(const std::string& index, std::int64_t tokens, TurnOptions options);

  /// Replaces the content of the last message, if its role is user, by the template with the
  /// passages; without a passage, it stays.
  /// Returns to_json() of the passages. Throws Error{bad_data} for a template that fails.
  core::OrderedJson put_into(core::OrderedJson& messages) const;

 private:
  passages::PassageIndex index_;
  std::uint64_t tokens_;
  TurnOptions options_;
  text::ChatTemplate form_;
};

}  // namespace infer
