#pragma once
// Converts text to token ids and back. A tokenizer is stored as a tokenizer.json in the format of
// Hugging Face's tokenizers, which give equal ids for equal text (special tokens in a text are
// ordinary text: encode_special_tokens=True there).
//
//   bytes  the 256 bytes, id = byte
//   bpe    byte-level byte-pair encoding with one of many pre-tokenizers; decoding restores any
//          bytes exactly (unless a normalizer changes them)
//   longest  the longest token, of any bytes, that the rest of the text begins with (RWKV's World)
//   pieces byte-pair encoding of characters with marked spaces, and bytes for characters without a
//          token (SentencePiece's, of Llama 2 and Mistral)
//   unigram  the most probable sequence of pieces (SentencePiece's unigram language model)
//   word   words between spaces; a newline is the token `<eos>`, an unknown word is `<unk>`
//   units  words split into units of characters by a list of merges (subword-nmt)
// Maps tokens to ids and back.
// Converts tokens to and from what people write: text with a tokenizer, ids without one.

#include "core/hash.h"
#include "text/tokenizer/merges.h"

namespace text {

/// A Vocabulary holds distinct tokens of any bytes. Ids may have gaps. Const calls are thread safe.
class Vocabulary {
 public:
  /// Returns the highest id + 1.
  std::size_t size() const { return tokens_.size(); }
  /// Returns the number of tokens, not counting gaps and nameless tokens.
  std::size_t count() const { return count_; }
  bool has(std::uint32_t id) const { return id < size() && tokens_[id].offset != kGap; }
  /// Returns the token of an id; empty for a gap.
  std::string_view token(std::uint32_t id) const;
  std::optional<std::uint32_t> id_of(std::string_view token) const;
  /// Behaves like id_of(), but also finds nameless tokens, in linear time.
  std::optional<std::uint32_t> id_of_any(std::string_view token) const;

  /// Assigns `id` to `token`. Returns false if either is already in use.
  bool set(std::uint32_t id, std::string_view token);
  /// Behaves like set(), but accepts a token that may have the bytes of another token, and hides it
  /// from id_of().
  bool set_nameless(std::uint32_t id, std::string_view token);
  bool is_nameless(std::uint32_t id) const { return id < nameless_.size() && nameless_[id]; }
  /// Returns the id of `token`; adds it with id size() if it is new.
  std::uint32_t add(std::string_view token);
  void reserve(std::size_t tokens, std::size_t bytes);

 private:
  static constexpr std::uint32_t kGap = 0xFFFFFFFF;
  struct Place {
    std::uint32_t offset = kGap, bytes = 0;
  };
  std::size_t find_slot(std::string_view token) const;
  void grow();
  void put(std::uint32_t id, std::string_view token);

  std::string pool_;
  std::vector<Place> tokens_;
  std::vector<std::uint32_t> slots_;  // ids by hash, open addressing; kGap means free
  std::size_t count_ = 0;
  std::vector<bool> nameless_;  // by id; may be shorter than tokens_
};

enum class TokenizerKind { bytes, bpe, longest, word, units, pieces, unigram };
std::string_view name_of(TokenizerKind kind);

/// A SpecialToken is a token that text does not encode to: end of document, beginning, padding.
struct SpecialToken {
  std::uint32_t id;
  std::string content;
  bool operator==(const SpecialToken&) const = default;
};

/// An Encoder encodes whole texts and caches words between them. Each thread needs its own; its
/// tokenizer must outlive it.
class Encoder {
 public:
  virtual ~Encoder() = default;
  /// Appends the ids of `text`, a whole text, or with `continued` the rest after a cut (see
  /// Tokenizer::cut).
  virtual void encode(
      std::string_view text, std::vector<std::uint32_t>& out, bool continued = false) = 0;
};

/// A Tokenizer converts text to ids and back. Const calls are thread safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual TokenizerKind kind() const = 0;
  std::string summary() const;  ///< returns its kind and size in one line
  /// Returns the exclusive upper bound of the ids.
  std::size_t size() const { return vocabulary_.size(); }
  /// Returns the bytes of a token (the content of a special token); empty if the id has none.
  std::string_view token(std::uint32_t id) const { return vocabulary_.token(id); }
  std::optional<std::uint32_t> id_of(std::string_view token) const {
    return vocabulary_.id_of_any(token);
  }
  /// Behaves like id_of(), but finds no added tokens outside the model's vocabulary: ordinary text
  /// never encodes to these.
  std::optional<std::uint32_t> model_id_of(std::string_view token) const {
    return vocabulary_.id_of(token);
  }
  const std::vector<SpecialToken>& special_tokens() const { return special_; }
  /// Returns the default token after each document: the special token `<|endoftext|>` or, without
  /// one, `</s>`, `<|end_of_text|>` or `<eos>`.
  std::optional<std::uint32_t> end_of_document() const;
  /// A Template is what the tokenizer's models expect before and after a text (TemplateProcessing).
  struct Template {
    std::vector<std::uint32_t> begin, end;
    bool empty() const { return begin.empty() && end.empty(); }
  };
  const Template& text_template() const { return template_; }
  /// Returns, in one line, how this tokenizer differs from other readers of its file; empty: not at
  /// all.
  const std::string& remark() const { return remark_; }
  void set_remark(std::string remark) { remark_ = std::move(remark); }

  virtual std::unique_ptr<Encoder> encoder() const = 0;
  /// Returns a copy of the tokenizer that encodes the content of a special token in a text as that
  /// token. Throws Error{unavailable} for word and units tokenizers.
  virtual std::shared_ptr<const Tokenizer> parsing_special() const;
  /// Encodes one text and appends its ids. Use an Encoder for many texts.
  void encode(std::string_view text, std::vector<std::uint32_t>& out) const;
  std::vector<std::uint32_t> encode(std::string_view text) const;

  /// Returns a position in (begin, end] where the text that starts at `begin` may be cut: the ids
  /// of the text are those of the part before the cut followed by those of the rest, whatever
  /// follows `end`. Returns nullptr if more text is needed, which is never the case from 2 *
  /// kMaxPretokenBytes on.
  virtual const char* cut(const char* begin, const char* end) const = 0;

  /// Appends the text of `id`. `line_start` is state between calls, initially true. Throws
  /// Error{bad_data} for an id without a token.
  virtual void decode_token(std::uint32_t id, bool& line_start, std::string& out) const = 0;
  /// Returns the text of `ids`, which is exact for bytes, bpe and pieces, except for a normalizer's
  /// changes. `line_start`: the text begins a line.
  std::string decode(std::span<const std::uint32_t> ids, bool line_start = true) const;

  /// Returns true if newlines count as words of a source text. This is WikiText's convention and
  /// applies to word tokenizers; otherwise words are separated by white space.
  bool counts_newlines() const { return kind() == TokenizerKind::word; }

  /// Returns the tokenizer.json in canonical form, as core::dump writes it. Equal tokenizers have
  /// equal forms, whichever program wrote their files.
  virtual std::string json() const = 0;
  /// Returns the XXH3-128 of json().
  core::Digest fingerprint() const { return core::hash128(json()); }

 protected:
  /// Sets the members of all kinds. Throws Error{bad_data} for a merge of an id without a token and
  /// for a special token that is not in the vocabulary.
  void take(
      Vocabulary vocabulary, const std::vector<Merge>& merges, std::vector<SpecialToken> special);
  /// Throws Error{bad_data} for an id without a token.
  void expect_token(std::uint32_t id) const;

  Vocabulary vocabulary_;
  std::vector<SpecialToken> special_;  // by id
  Template template_;
  std::string remark_;
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

/// A StreamEncoder encodes one text that arrives in pieces of any size; the ids equal those of the
/// whole text. Memory: the longest word, at most a few times kMaxPretokenBytes.
class StreamEncoder {
 public:
  explicit StreamEncoder(TokenizerPtr tokenizer);
  void feed(std::string_view piece, std::vector<std::uint32_t>& out);
  /// Ends the text; another may follow.
  void finish(std::vector<std::uint32_t>& out);

 private:
  TokenizerPtr tokenizer_;
  std::unique_ptr<Encoder> encoder_;
  std::string rest_;
  bool continued_ = false;  // rest_ follows a cut
  std::size_t try_at_ = 0;  // the length of rest_ at which to look for a cut again
};

/// A StreamDecoder decodes ids one at a time. It returns bytes at once, so a character of several
/// tokens arrives in parts.
class StreamDecoder {
 public:
  explicit StreamDecoder(TokenizerPtr tokenizer) : tokenizer_(std::move(tokenizer)) {}
  void push(std::uint32_t id, std::string& out) { tokenizer_->decode_token(id, line_start_, out); }
  /// Starts a new text.
  void restart() { line_start_ = true; }

 private:
  TokenizerPtr tokenizer_;
  bool line_start_ = true;
};

/// A TextOrIds wraps a tokenizer that may be absent.
class TextOrIds {
 public:
  /// `tokenizer` may be null; `name` is its owner in messages.
  TextOrIds(TokenizerPtr tokenizer, std::string name)
      : tokenizer_(std::move(tokenizer)), name_(std::move(name)) {}

  /// Encodes a text or, with `ids`, parses ids separated by spaces. Throws Error{usage} if a
  /// tokenizer is needed and absent, for invalid ids, and for an empty result.
  std::vector<std::uint32_t> encode(const std::string& text, bool ids) const;
  /// Returns the text of the tokens, or the ids separated by spaces. A text omits ids without a
  /// token.
  std::string decode(std::span<const std::uint32_t> tokens) const;
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }

 private:
  TokenizerPtr tokenizer_;
  std::string name_;
};

}  // namespace text
