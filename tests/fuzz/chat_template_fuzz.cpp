// Any chat template gives a text within its bounds or an Error. The bytes after a NUL are its
// variables.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "core/json.h"
#include "fuzz/target.h"
#include "text/chat/chat_template.h"

FUZZ_TARGET(chat_template)(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  core::OrderedJson variables = core::OrderedJson::parse(
      R"({"bos_token": "<s>", "add_generation_prompt": true, "tools": null, "messages": [
         {"role": "system", "content": "s"}, {"role": "user", "content": " hi "},
         {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function":
         {"name": "f", "arguments": {"a": [1, 2.5, true]}}}]}]})");
  if (end != input.npos) {
    try {
      core::parse_json(input.substr(end + 1), "v");
      const auto given = core::OrderedJson::parse(input.substr(end + 1), nullptr, false);
      if (given.is_object()) variables = given;
    } catch (const core::Error&) { return; }
  }
  const text::ChatLimits limits{100'000, 100'000};
  try {
    const text::ChatTemplate parsed(input.substr(0, end), "t");
    const auto text = parsed.render(variables, 1735732800, limits);
    if (text.size() > limits.bytes + 16 * (size + 4096) * 17) std::abort();
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
  }
}
