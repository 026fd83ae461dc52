// Any line of sample --cite --json gives a page or an Error for the user.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/io.h"
#include "fuzz/target.h"
#include "page/annotated_text.h"
#include "page/page_writer.h"

FUZZ_TARGET(cited_sample)(const std::uint8_t* data, std::size_t size) {
  page::AnnotatedText text;
  try {
    page::add_sample(text, {reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data || !text.tokens.empty()) std::abort();
    return;
  }
  core::MemorySink sink;
  page::write_page(sink, text);
  const std::string_view html = sink.text();
  std::size_t scripts = 0;
  for (auto at = html.find("<script"); at != html.npos; at = html.find("<script", at + 1))
    ++scripts;
  if (scripts != 3) std::abort();
}
