#include "infer/windows/window_options.h"

#include <utility>

#include "core/error.h"

namespace infer {

void WindowOptions::fields(core::FieldList& f, bool documents) {
  const auto in_windows = f.group("Windows");
  f("window", window,
    "tokens fed at once; 0: the segment of its training, else the model's positions")
      .between(0, 16e6);
  f("stride", stride,
    "tokens by which a window advances; it scores those that are new; "
    "auto: the window, or with --carry on of a State that forgets half of it")
      .between(1, 16e6)
      .or_auto();
  if (documents)
    f("restart", restart, "forget all before each document, or never", {"none", "document"});
  f("carry", carry,
    "carry the State on instead of encoding a window's context again; auto: if it does not grow",
    {"auto", "on", "off"});
  f("begin", begin,
    "what stands before the text: none, or a token; "
    "auto: what the tokenizer's template says, else the token after which its documents start");
  f("begin-of", begin_of,
    "window: that token stands in the place of each later window's first token too",
    {"text", "window"});
  f("batch-tokens", batch_tokens, "tokens that go through the model together").between(1, 1e9);
}

void WindowOptions::protocol_field(core::FieldList& f, std::vector<std::string> names) {
  const auto in_windows = f.group("Windows");
  f("protocol", protocol,
    "windows, what begins them and what counts as another program has them; "
    "options that are given win",
    std::move(names));
}

void WindowOptions::settle(const std::set<std::string>& given) {
  const Protocol* const chosen = find_protocol(protocol);
  if (chosen == nullptr) return;
  if (given.count("restart") == 0 && chosen->by_document) restart = "document";
  if (given.count("begin-of") == 0 && chosen->begins_windows) begin_of = "window";
}

void refuse_windows_of_pairs(const std::set<std::string>& given) {
  for (const char* flag : {"window", "stride", "restart", "carry", "begin", "begin-of", "protocol"})
    if (given.count(flag) > 0)
      core::fail(core::Code::usage, "--{}: pairs of sentences have no windows", flag);
}

}  // namespace infer
