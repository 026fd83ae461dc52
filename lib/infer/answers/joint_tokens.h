#pragma once
// Where a continuation begins, in tokens.

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace infer {

struct JointTokens {
  std::vector<std::int64_t> context, continuation;
  std::int64_t bytes = 0;  ///< of the continuation, with what was the context's
};

/// Where continuations of a context begin: behind as many tokens as the context has alone (as
/// lm-evaluation-harness does it), or behind the tokens that the context alone and the whole texts
/// of all its continuations have in common.
enum class Boundary { count, prefix };

/// White space that ends the context goes to the continuations. Each is encoded with the context as
/// one text; what that has behind the boundary is the continuation's, which may be nothing. With
/// Boundary::prefix tokens of the context's end that are not in common are the continuations', and
/// so are their bytes.
std::vector<JointTokens> encode_jointly(const text::Tokenizer& tokenizer, text::Encoder& encoder,
                                        const std::string& context,
                                        const std::vector<std::string>& continuations,
                                        Boundary boundary);

/// Bytes of white space at the end of a text (UTF-8; of Unicode what Python's str.isspace() says).
std::size_t trailing_space(const std::string& text);

}  // namespace infer
