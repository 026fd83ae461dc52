#pragma once
// Splits a joint encoding into context and continuation tokens.

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace infer {

/// A JointTokens has the token ids of a context and of one of its continuations.
struct JointTokens {
  std::vector<std::int64_t> context, continuation;
  std::int64_t bytes = 0;  ///< of the continuation, including context bytes moved to it
};

/// Boundary says where the continuation begins. count: after as many tokens as the context has when
/// encoded alone (as in lm-evaluation-harness). prefix: after the tokens common to the context
/// alone and to the whole texts of all continuations.
enum class Boundary { count, prefix };

/// Encodes each continuation jointly with the context; tokens after the boundary belong to the
/// continuation, which may be empty. White space at the end of the context moves to the
/// continuations. With Boundary::prefix, context tokens after the common prefix and their bytes
/// also move to the continuations.
std::vector<JointTokens> encode_jointly(const text::Tokenizer& tokenizer, text::Encoder& encoder,
                                        const std::string& context,
                                        const std::vector<std::string>& continuations,
                                        Boundary boundary);

/// Returns the bytes of white space at the end of a UTF-8 text, as defined by Python's
/// str.isspace().
std::size_t trailing_space(const std::string& text);

}  // namespace infer
