#pragma once
// Converts text to token ids and back.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace text {
class Tokenizer;
}

namespace tessera {

/// A Tokenizer is one of a tokenizer.json, in the format of Hugging Face's tokenizers, or of
/// another file that tokenize(1) reads. Copies share it. Thread safe.
class Tokenizer {
 public:
  /// Reads the tokenizer of a file, of a folder (of a model or of a tokenizer), or the one named
  /// "bytes", whose ids are the 256 bytes. Throws Error{66} if there is none, and Error{65} for a
  /// file that is damaged or of an unsupported kind, naming the part that is not supported.
  explicit Tokenizer(const std::string& path);
  /// For Tessera's own code, as shared(): the type is not installed.
  explicit Tokenizer(std::shared_ptr<const text::Tokenizer> tokenizer);

  /// Returns the exclusive upper bound of the ids.
  std::size_t size() const;
  /// Returns the ids of a text, which is UTF-8. Texts of special tokens are ordinary text.
  std::vector<std::uint32_t> encode(std::string_view text) const;
  /// Returns the text of ids. Throws Error{65} for an id without a token.
  std::string decode(std::span<const std::uint32_t> ids) const;
  /// Returns the bytes of one token; empty if the id has none.
  std::string token(std::uint32_t id) const;
  /// Returns the id that ends documents, such as that of `<|endoftext|>`; none without one.
  std::optional<std::uint32_t> end_of_document() const;
  /// Returns the tokenizer.json in canonical form: equal tokenizers have equal forms.
  std::string json() const;
  /// Returns the tokenizer that copies share.
  const text::Tokenizer& shared() const { return *tokenizer_; }

 private:
  std::shared_ptr<const text::Tokenizer> tokenizer_;
};

}  // namespace tessera
