#pragma once
// Reads the members of a request, and refuses those that would have no effect on its answer.

#include "serve/http_request.h"

namespace serve {

/// Members of requests to OpenAI, vLLM and llama.cpp that are not read here, a line for the values
/// that ask for nothing: these as a JSON list, or "*" for members that never change an answer here;
/// a tab; the names of the members. null, [] and "" always ask for nothing, and so does {}, unless
/// the values are [null]. serve(1) has the same table.
extern const std::string_view kKnownMembers;

/// Returns the whole number that a value is, exactly; a float may be one up to 2^53.
std::optional<std::int64_t> whole_number(const core::Json& value);

/// Reads the members of an object; null means absent. The take functions leave `to` unchanged if
/// the member is absent, and throw HttpError 400, naming it, for another value. `json` must outlive
/// it.
class Members {
 public:
  explicit Members(const core::Json& json) : json_(json) {}

  const core::Json* find(const char* name) const;
  void take(const char* name, std::int64_t least, std::int64_t most, std::int64_t& to) const;
  void take(const char* name, double least, double most, double& to) const;
  void take(const char* name, bool& to) const;

  /// Throws HttpError 400, naming the member, for a member that no call has asked for, unless it is
  /// known to have no effect, or known and has a value that asks for nothing.
  void refuse_others() const;

 private:
  const core::Json& json_;
  mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace serve
