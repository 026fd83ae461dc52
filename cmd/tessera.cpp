// tessera: one name for all programs.
//
// tessera PROGRAM ARGUMENT...: is replaced by that program, whose streams and exit status are its own. It stands in
// ../libexec/tessera of the folder of this file, or beside it.
// tessera help PROGRAM|PAGE: its manual, where man(1) is and there is one; else what its --help says.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/options.h"
#include "core/printable.h"
#include "programs.h"

namespace {

namespace fs = std::filesystem;
using core::Code;

// The folder of this file, wherever it was called from.
fs::path own_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

std::string file_of(const std::string& program) {
  const fs::path here = own_folder();
  for (const auto& folder : {here.parent_path() / "libexec" / "tessera", here})
    if (::access((folder / program).c_str(), X_OK) == 0) return folder / program;
  core::fail(Code::unavailable, "{} is not in {}/../libexec/tessera, nor beside tessera", program,
             here.string());
}

// Of a program, of a format or of the whole; empty where none is installed.
std::string page_of(const std::string& name) {
  const fs::path top = own_folder().parent_path();
  for (const auto& manuals : {top / "share" / "man", top / "man"}) {
    for (const char* section : {"1", "5", "7"}) {
      const fs::path page = manuals / (std::string("man") + section) / (name + "." + section);
      if (fs::exists(page)) return page;
    }
  }
  return {};
}

// Comes back only where there is no such file.
void become(const std::string& file, std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execvp(file.c_str(), pointers.data());
  if (errno != ENOENT) core::fail(Code::unavailable, "{}: {}", file, core::error_text(errno));
}

void expect_program(const std::string& name) {
  std::vector<std::string> names = {"help"};
  for (const auto& program : programs::kAll) names.push_back(program.name);
  if (std::find(names.begin() + 1, names.end(), name) != names.end()) return;
  const std::string near = core::did_you_mean(name, names);
  core::fail(Code::usage, "{}: no such program{}", name,
             near.empty() ? "; tessera --help lists them" : near);
}

void help(const std::string& name) {
  const std::string page = page_of(name);
  if (!page.empty()) become("man", {"man", "-l", page});
  expect_program(name);
  become(file_of(name), {name, "--help"});
}

void hand_on(std::vector<std::string> arguments) {
  expect_program(arguments.front());
  become(file_of(arguments.front()), arguments);
}

std::string example() {
  std::string text =
      "  tessera train -o model x.shard.zst\n"
      "  tessera help eval-ppl\n\n"
      "Programs:\n"
      "  help PROGRAM                the manual of one\n";
  constexpr std::size_t kColumn = 28;
  for (const auto& program : programs::kAll) {
    std::string name = program.name;
    name.resize(std::max(kColumn - 2, name.size() + 1), ' ');
    text += "  " + name + program.summary + "\n";
  }
  text.pop_back();
  return text;
}

int about(int argc, char** argv) {
  return cli::run(argc, argv, {"tessera", "Runs one of Tessera's programs.", example()}, {});
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments[0].starts_with('-') && arguments[0] != "-")
    return about(argc, argv);
  try {
    if (arguments.empty()) core::fail(Code::usage, "give a program; tessera --help lists them");
    if (arguments[0] == "help" && arguments.size() == 2) help(arguments[1]);
    if (arguments[0] == "help")
      core::fail(Code::usage, "give help one program; tessera --help lists them");
    hand_on(arguments);
    core::fail(Code::unavailable, "{} went away", arguments[0]);
  } catch (const core::Error& error) {
    cli::to_stderr("tessera: " + core::printable(error.what()) + "\n");
    return static_cast<int>(error.code());
  }
}
