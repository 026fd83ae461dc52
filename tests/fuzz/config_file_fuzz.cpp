// Any --config file sets options or gives an Error{bad_config}. The output of --print-config then
// sets the same options.

#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "cli/config.h"
#include "core/error.h"
#include "fuzz/target.h"

namespace {

// An option of each type.
struct EachType {
  bool flag = false;
  std::int64_t size = 4;
  double rate = 0.1;
  std::string mode = "plain", text;
  std::vector<std::string> names;
  std::vector<std::int64_t> sizes = {1, 2};
  std::vector<double> rates;
  void fields(core::FieldList& f) {
    f("flag", flag, "a flag");
    f("size", size, "a size");
    f("rate", rate, "a rate");
    f("mode", mode, "a mode", {"plain", "other"});
    const auto in_more = f.group("More");
    f("text", text, "a text");
    f("names", names, "names");
    f("sizes", sizes, "sizes");
    f("rates", rates, "rates");
  }
};

void read_options(const std::string& text, EachType& options, std::set<std::string>& given) {
  cli::read_config(text, "x.conf", core::list_fields(options), given);
}

}  // namespace

FUZZ_TARGET(config_file)(const std::uint8_t* data, std::size_t size) {
  EachType options, again;
  std::set<std::string> given, given_again;
  try {
    read_options(std::string(reinterpret_cast<const char*>(data), size), options, given);
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_config) std::abort();
    return;
  }
  const std::string printed = cli::format_config(core::list_fields(options), &given);
  read_options(printed, again, given_again);
  if (given_again != given) std::abort();
  if (cli::format_config(core::list_fields(again), &given) != printed) std::abort();
}
