#pragma once
// Text to token ids and back. A tokenizer is kept as tokenizer.json in the format of Hugging Face's
// tokenizers, which gives the same ids for the same text (special tokens in a text are ordinary
// text: encode_special_tokens=True there).
//
//   bytes  the 256 bytes, id = byte
//   bpe    byte-level byte-pair encoding with one of many pre-tokenizers; any bytes come back
//          exactly (where no normalizer changes them)
//   pieces byte-pair encoding of characters with spaces marked, and bytes for characters it lacks
//          (SentencePiece's, of Llama 2 and Mistral)
//   unigram  pieces of the highest probability together (SentencePiece's unigram language model)
//   word   words between spaces; a newline is the token `<eos>`, a word not known `<unk>`
//   units  words cut into units of characters by a list of merges (subword-nmt)

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "text/tokenizer/merges.h"
#include "text/tokenizer/vocabulary.h"

namespace text {

enum class TokenizerKind { bytes, bpe, word, units, pieces, unigram };
std::string_view name_of(TokenizerKind kind);

/// A token that no text gives: marks (end of a document, beginning, padding).
struct SpecialToken {
  std::uint32_t id;
  std::string content;
  bool operator==(const SpecialToken&) const = default;
};

/// Encodes whole texts, remembering words from one to the next. One a thread; its tokenizer must
/// outlive it.
class Encoder {
 public:
  virtual ~Encoder() = default;
  /// Appends the ids of `text`, which stands alone (see Tokenizer::cut for parts of a text); with
  /// `continued` it is what follows a cut.
  virtual void encode(std::string_view text, std::vector<std::uint32_t>& out,
                      bool continued = false) = 0;
};

/// Const calls are thread safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual TokenizerKind kind() const = 0;
  std::string summary() const;  ///< its kind and size, in a line
  /// Every id is below it.
  std::size_t size() const { return vocabulary_.size(); }
  /// The bytes a token stands for (of a special token: its content); empty if there is none.
  std::string_view token(std::uint32_t id) const { return vocabulary_.token(id); }
  std::optional<std::uint32_t> id_of(std::string_view token) const {
    return vocabulary_.id_of(token);
  }
  const std::vector<SpecialToken>& special_tokens() const { return special_; }
  /// What stands after each document unless one asks otherwise: the special token
  /// `<|endoftext|>` or, without one, `</s>`, `<|end_of_text|>` or `<eos>`.
  std::optional<std::uint32_t> end_of_document() const;
  /// What a text begins and ends with for the models of this tokenizer (TemplateProcessing).
  struct Template {
    std::vector<std::uint32_t> begin, end;
    bool empty() const { return begin.empty() && end.empty(); }
  };
  const Template& text_template() const { return template_; }
  /// What differs from other readers of the file that it comes from, in a line; empty: nothing.
  const std::string& remark() const { return remark_; }
  void set_remark(std::string remark) { remark_ = std::move(remark); }

  virtual std::unique_ptr<Encoder> encoder() const = 0;
  /// Appends the ids of `text`. Use an Encoder for many texts.
  void encode(std::string_view text, std::vector<std::uint32_t>& out) const;
  std::vector<std::uint32_t> encode(std::string_view text) const;

  /// A position in (begin, end] where the text that starts at `begin` may be cut: its ids are those
  /// of the part before and those of the rest, whatever follows `end`. nullptr: more text is
  /// needed. There is always one in 2 * kMaxPretokenBytes.
  virtual const char* cut(const char* begin, const char* end) const = 0;

  /// Appends what `id` prints. `line_start` is true at the start of a text and carried on.
  /// Throws Error{bad_data} for an id that is no token's.
  virtual void decode_token(std::uint32_t id, bool& line_start, std::string& out) const = 0;
  /// The text of `ids`: exact for bytes, bpe and pieces, but for what a normalizer changes.
  std::string decode(std::span<const std::uint32_t> ids) const;

  /// Words of a source text are counted as tokens (word: the convention of WikiText, each newline a
  /// token); else they are what stands between white space.
  bool counts_newlines() const { return kind() == TokenizerKind::word; }

  /// tokenizer.json in canonical form: what core::dump gives for it, equal for equal tokenizers
  /// whoever wrote their files.
  virtual std::string json() const = 0;
  /// XXH3-128 of json().
  core::Digest fingerprint() const { return core::hash128(json()); }

 protected:
  /// Takes what all kinds have. Throws Error{bad_data} for a merge of an id that is no token's or a
  /// special token that is not in the vocabulary.
  void take(Vocabulary vocabulary, const std::vector<Merge>& merges,
            std::vector<SpecialToken> special);
  /// Throws Error{bad_data} for an id that is no token's.
  void expect_token(std::uint32_t id) const;

  Vocabulary vocabulary_;
  std::vector<SpecialToken> special_;  // by id
  Template template_;
  std::string remark_;
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

/// Encodes one text that comes in pieces of any size: the same ids as for the whole text. Memory:
/// the longest word, at most a few times kMaxPretokenBytes.
class StreamEncoder {
 public:
  explicit StreamEncoder(TokenizerPtr tokenizer);
  void feed(std::string_view piece, std::vector<std::uint32_t>& out);
  /// The text ends; another may follow.
  void finish(std::vector<std::uint32_t>& out);

 private:
  TokenizerPtr tokenizer_;
  std::unique_ptr<Encoder> encoder_;
  std::string rest_;
  bool continued_ = false;  // rest_ follows a cut
  std::size_t try_at_ = 0;  // looking for a cut again makes sense once rest_ is as long
};

/// Decodes ids one by one: bytes come out as they come, so a character of several tokens may be
/// cut.
class StreamDecoder {
 public:
  explicit StreamDecoder(TokenizerPtr tokenizer) : tokenizer_(std::move(tokenizer)) {}
  void push(std::uint32_t id, std::string& out) { tokenizer_->decode_token(id, line_start_, out); }
  /// A new text starts.
  void restart() { line_start_ = true; }

 private:
  TokenizerPtr tokenizer_;
  bool line_start_ = true;
};

}  // namespace text
