// tessera: one name for all programs.
//
// tessera PROGRAM ARGUMENT... is replaced by the program, which keeps its streams and exit status.
// Programs are in libexec/tessera of the installation, or beside this program. tessera help
// PROGRAM|PAGE shows the manual if man(1) and the page exist, else the text of --help.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/options.h"
#include "core/plain_text.h"
#include "programs.h"

namespace {

namespace fs = std::filesystem;
using core::Code;

// The location of this program: in bin, in libexec/tessera with the others, or beside them in a
// build. A tarball's own C library may have started it (packaging/tessera.sh). It then starts the
// other programs with that library too.
struct Installation {
  fs::path top, folder;             // folder: programs, if not in libexec/tessera of top
  std::vector<std::string> loader;  // precedes a program's arguments

  Installation() {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    folder = self.parent_path();
    top = folder.parent_path();
    if (self.filename().string().starts_with("ld-linux")) {
      const fs::path libraries = folder.parent_path();
      top = libraries.parent_path().parent_path();
      loader = {self, "--library-path", folder.string() + ":" + libraries.string(), "--argv0"};
    } else if (folder.filename() == "tessera" && top.filename() == "libexec") {
      top = top.parent_path();
    }
  }

  std::string program(const std::string& name) const {
    for (const auto& place : {top / "libexec" / "tessera", folder})
      if (::access((place / name).c_str(), X_OK) == 0) return place / name;
    core::fail(Code::unavailable, "{} is neither in {} nor beside tessera", name,
        (top / "libexec" / "tessera").string());
  }

  // Returns the manual page of a program, a format or the whole, or an empty path if none is
  // installed. The name may end with its section: store.5 or store(5).
  std::string page(const std::string& name) const {
    for (const auto& manuals : {top / "share" / "man", top / "man"}) {
      for (const std::string section : {"1", "5", "7"}) {
        std::string only = name;
        for (const auto& end : {"." + section, "(" + section + ")"})
          if (only.ends_with(end)) only.resize(only.size() - end.size());
        const fs::path page = manuals / ("man" + section) / (only + "." + section);
        if (fs::exists(page)) return page;
      }
    }
    return {};
  }
};

// Returns only if the file does not exist.
void become(const std::string& file, std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execvp(file.c_str(), pointers.data());
  if (errno != ENOENT) core::fail(Code::unavailable, "{}: {}", file, core::error_text(errno));
}

[[noreturn]] void become_program(const Installation& place, std::vector<std::string> arguments) {
  const std::string file = place.program(arguments.front());
  if (!place.loader.empty()) {
    std::vector<std::string> all = place.loader;
    all.push_back(arguments.front());
    all.push_back(file);
    all.insert(all.end(), arguments.begin() + 1, arguments.end());
    become(all.front(), all);
  }
  become(file, arguments);
  core::fail(Code::unavailable, "{}: cannot start it", file);
}

void expect_program(const std::string& name) {
  std::vector<std::string> names = {"help"};
  for (const auto& program : programs::kAll) names.push_back(program.name);
  if (std::find(names.begin() + 1, names.end(), name) != names.end()) return;
  const std::string near = core::did_you_mean(name, names);
  core::bad_usage(
      "{}: no such program{}", name, near.empty() ? "; tessera --help lists them" : near);
}

[[noreturn]] void help(const std::string& name) {
  const Installation place;
  for (const auto& page : {place.page(name), place.page("tessera-" + name)})
    if (!page.empty()) become("man", {"man", "-l", page});
  expect_program(name);
  become_program(place, {name, "--help"});
}

[[noreturn]] void hand_on(const std::vector<std::string>& arguments) {
  expect_program(arguments.front());
  become_program({}, arguments);
}

std::string example() {
  std::string text =
      "  tessera train book.txt -o model\n"
      "  tessera eval-ppl -m model --cache 2000 other.txt\n"
      "  tessera help tutorial\n\n"
      "Programs:\n";
  const std::size_t width = cli::terminal_width(STDOUT_FILENO);
  text += cli::help_row("help PROGRAM",
      "print the manual of a program; begin with help tour, tutorial or your-model", width);
  for (const auto& program : programs::kAll)
    text += cli::help_row(program.name, program.summary, width);
  text.pop_back();
  return text;
}

int about(int argc, char** argv) {
  cli::Program about_tessera = {"tessera", "Run one of Tessera's programs.", example()};
  about_tessera.usage = "PROGRAM [ARGUMENT...]";
  return cli::run(argc, argv, about_tessera, {});
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments[0].starts_with('-') && arguments[0] != "-")
    return about(argc, argv);
  try {
    if (arguments.empty())
      core::bad_usage(
          "give a program; start with: tessera train book.txt -o model, then tessera sample -m "
          "model; tessera help tutorial shows more, tessera --help lists all");
    if (arguments[0] != "help") hand_on(arguments);
    if (arguments.size() != 2)
      core::bad_usage("help: takes one program; tessera --help lists them");
    help(arguments[1]);
  } catch (const core::Error& error) {
    cli::to_stderr("tessera: " + core::printable(error.what()) + "\n");
    return static_cast<int>(error.code());
  }
}
